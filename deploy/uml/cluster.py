"""Make one cluster of the nodes, with the commands an operator would type."""

from collections.abc import Callable, Sequence

from deploy.uml.command import Trouble
from deploy.uml.node import Node
from deploy.uml.place import CLUSTER, FILE_DISKS, GROUP, SHARED_DISKS

MEMBERSHIP = "/var/lib/gantry/identity/membership.json"
TEMPLATES = "drbd,plain,sharedfile,file,diskless"
ALONE = "flock /run/lab-form"  # a command goes on when the ssh that began it is interrupted


def form(nodes: Sequence[Node], say: Callable[[str], None]) -> Node:
    """Make a cluster of the nodes, go on with one, or find it made; return the master.

    Raises:
        Trouble: a command failed, or verify found something.
    """
    first = nodes[0]
    if not _is_member(first):
        init = (
            f"gnt-cluster init --address {first.spot.address} --file-storage-dir {FILE_DISKS} "
            f"--shared-file-storage-dir {SHARED_DISKS} --vg-name {GROUP} "
            f"--enabled-disk-templates {TEMPLATES} {CLUSTER}"
        )
        say(f"{first.name}# {init}")
        first.run(f"{ALONE} sh -c 'test -e {MEMBERSHIP} || {init}'")
    names = {node.name: node for node in nodes}
    master = names[first.run("gnt-cluster getmaster").strip()]
    # Who was interrupted may have left it like this, or a node that is about to join.
    master.run(f"{ALONE} systemctl start gantry-coordinator")
    master.run("gnt-job list --running --no-headers -o id | xargs -r gnt-job wait || true")
    known = master.run("gnt-node list --no-headers -o name").split()
    for node in nodes:
        if node.name in known:
            continue
        add = f"gnt-node add --address {node.spot.address} --token-file - {node.name}"
        say(f"{node.name}# gantry join-token | {master.name}# {add}")
        master.run(f"{ALONE} {add}", stdin=node.run("gantry join-token"))
    say(f"{master.name}# gnt-cluster verify")
    check_clean(master)
    return master


def check_clean(master: Node) -> None:
    """Run ``gnt-cluster verify``.

    Raises:
        Trouble: it found something.
    """
    found = master.run("gnt-cluster verify")
    if "ERROR" in found or "WARNING" in found:
        raise Trouble(f"gnt-cluster verify is not content:\n{found}")


def _is_member(node: Node) -> bool:
    return bool(node.run(f"test ! -e {MEMBERSHIP} || echo member"))
