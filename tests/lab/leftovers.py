"""What nodes have of instances that the configuration does not know there.

All that is made for an instance or a disk carries its UUID, so what is looked for are UUIDs.
"""

import re

from deploy.uml.node import Node
from tests.lab.stage import Stage

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIRECTORIES = "/srv/disks /run/gantry/instances /run/gantry/copies /run/gantry/attached"
LOOK = f"""
lvs --noheadings -o lv_full_name,lv_tags | sed 's/^/volume /'
drbdsetup status 2>/dev/null | grep -v '^ ' | sed 's/^/device /'
ls -d $(for each in {DIRECTORIES}; do echo $each/*; done) 2>/dev/null | sed 's/^/file /'
pgrep --list-full qemu-system | sed 's/^/process /'
ip -o link | sed 's/^/link /'
findmnt --raw --noheadings -o TARGET | sed 's/^/mount /'
true"""


def leftovers(stage: Stage) -> dict[str, list[str]]:
    """Return, for each node that has any, the volumes, devices, files, processes, links and mounts
    of instances and disks that are not its own by the configuration."""
    known = _known(stage)
    found = {node.name: _unknown(node, known.get(node.name, set())) for node in stage.nodes}
    return {name: lines for name, lines in found.items() if lines}


def _known(stage: Stage) -> dict[str, set[str]]:
    """Return the UUIDs of the instances that each node has, and of their disks and nics."""
    fields = "--no-headers --separator=';' -o uuid,pnode,snodes,disk.uuids,nic.uuids"
    known: dict[str, set[str]] = {}
    for line in stage.alpha.run(f"gnt-instance list {fields}").splitlines():
        uuid, home, seconds, disks, nics = line.strip().split(";")
        for node in {home, *seconds.split(",")} - {""}:
            known.setdefault(node, set()).update({uuid, *disks.split(","), *nics.split(",")})
    return known


def _unknown(node: Node, known: set[str]) -> list[str]:
    lines = node.run(LOOK).splitlines()
    return [line for line in lines if set(UUID.findall(line)) - known and _is_about(line)]


def _is_about(line: str) -> bool:
    """Tell whether a line is about an instance; other mounts have UUIDs, too."""
    kind, _, rest = line.partition(" ")
    return kind != "mount" or "/run/gantry/" in rest
