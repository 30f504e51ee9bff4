"""A guest with an operating system in the lab: Debian's cloud kernel, and a program that counts."""

import shlex
from collections.abc import Callable

from deploy.uml.command import Trouble, run
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from deploy.uml.place import CHECKOUT, SHARED

NAME = "web1"
BUILD_S = 60.0


def ensure_guest(lab: Lab, name: str, say: Callable[[str], None]) -> Node:
    """Have an instance of that name, on shared files so that it can move; return the master.

    Raises:
        Trouble: no node is on, there is no cluster, or it does not take the instance.
    """
    master = _master(lab)
    if name in master.run("gnt-instance list --no-headers -o name").split():
        return master
    kernel = ensure_files(lab)
    line = (
        f"gnt-instance add -t sharedfile --disk 0:size=64M --net 0:link=br0 -B memory=128 "
        f"-H kvm:{kernel} {shlex.quote(name)}"
    )
    say(f"{master.name}# {line}")
    master.run(line)
    return master


def ensure_files(lab: Lab) -> str:
    """Have the guest's kernel where all nodes see it; return the parameters that name it."""
    files = lab.place.shared / "guest"
    run((str(CHECKOUT / "deploy/guest/build"), str(files)), timeout_s=BUILD_S)
    return f"kernel_path={SHARED}/guest/vmlinuz,initrd_path={SHARED}/guest/initrd"


def _master(lab: Lab) -> Node:
    on = [node for node in lab.nodes() if node.state == "on"]
    if not on:
        raise Trouble("No node of the lab is on; “deploy/lab up” starts them.")
    return lab.node(on[0].run("gnt-cluster getmaster").strip())
