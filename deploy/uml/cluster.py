"""Make one cluster of the nodes, with the commands an operator would type."""

from collections.abc import Callable, Sequence

from deploy.uml.command import Trouble
from deploy.uml.node import Node
from deploy.uml.place import CLUSTER


def form(nodes: Sequence[Node], say: Callable[[str], None]) -> None:
    """Initialise the cluster on the first node and take the others in; done before is kept.

    Raises:
        Trouble: a command failed, or verify found something.
    """
    master, *others = nodes
    if not _is_member(master):
        init = f"gnt-cluster init --address {master.spot.address} {CLUSTER}"
        say(f"{master.name}# {init}")
        master.run(init)
    known = master.run("gnt-node list --no-headers -o name").split()
    for node in others:
        if node.name in known:
            continue
        add = f"gnt-node add --address {node.spot.address} --token-file - {node.name}"
        say(f"{node.name}# gantry join-token | {master.name}# {add}")
        master.run(add, stdin=node.run("gantry join-token"))
    say(f"{master.name}# gnt-cluster verify")
    check_clean(master)


def check_clean(master: Node) -> None:
    """Run ``gnt-cluster verify``.

    Raises:
        Trouble: it found something.
    """
    found = master.run("gnt-cluster verify")
    if "ERROR" in found or "WARNING" in found:
        raise Trouble(f"gnt-cluster verify is not content:\n{found}")


def _is_member(node: Node) -> bool:
    return bool(node.run("test ! -e /var/lib/gantry/identity/membership.json || echo member"))
