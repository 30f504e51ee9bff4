"""Look at everything when nothing is broken: devices, guests, what they have written, jobs."""

import base64
from pathlib import Path

from common.messages import from_json
from common.model.backing import DrbdBacking, FileBacking, LvmBacking
from common.model.instance import Instance
from common.names import NodeName
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from tests.lab import probe
from tests.lab.chaos.ear import Ears
from tests.lab.chaos.schedule import GUESTS
from tests.lab.strays import Found, Known, read, strays
from tests.support.sequence import BYTES, Sequence, check

PROGRAM = Path(probe.__file__)
LOOKS = 4  # at a disk that is being written to, where a look may come between two writes


def look(node: Node) -> Found:
    """Return what a node has."""
    text = node.run("python3.11 -", stdin=PROGRAM.read_text())
    return from_json(text, Found, what=f"what is on {node.name}")


def inspect(lab: Lab, master: Node, ears: Ears) -> list[str]:
    """Say in sentences what is wrong; nothing is to be under way."""
    found = {NodeName(node.name): look(node) for node in lab.nodes()}
    known = read(found[NodeName(master.name)].rows)
    return [
        *strays(known, found),
        *ears.lost(),
        *_faults_of_ours(known),
        *(
            line
            for each in known.instances
            if each.name in GUESTS  # others do not write like them
            for line in _of_data(lab, known, each, ears)
        ),
    ]


def _faults_of_ours(known: Known) -> list[str]:
    return [
        f"Job {job.id} came upon a fault of ours: {op.failure.message}"
        for job in known.jobs
        for op in job.ops
        if op.failure and op.failure.code == "bug"
    ]


def _of_data(lab: Lab, known: Known, instance: Instance, ears: Ears) -> list[str]:
    """Hold each copy of a guest's first disk against what it has told."""
    disk = known.disks_of(instance)[0]
    wrong = []
    for holder in disk.nodes:
        node = lab.node(known.name_of(holder))
        match disk.backing:
            case LvmBacking() as data:
                path = f"/dev/{data.group}/{data.name}"
            case DrbdBacking(data=data):
                path = f"/dev/{data.group}/{data.name}"
            case FileBacking(path=path):
                pass
            case _:
                continue
        where = f"The copy of {instance.name} on {node.name}, {path}"
        wrong += _of_copy(node, path, instance.uuid, where, ears)
    return wrong


def _of_copy(node: Node, path: str, guest: str, where: str, ears: Ears) -> list[str]:
    wrong: list[str] = []
    for _ in range(LOOKS):
        told = ears.told().get(guest, 0)
        wrong = ears.check(guest, told, where, read_disk(node, path))
        if not wrong:
            break
    return wrong


def read_disk(node: Node, path: str) -> Sequence:
    """Read past all caches what a tiny guest has written."""
    words = f"dd if={path} iflag=direct bs={BYTES} count=1 status=none | base64 --wrap 0"
    return check(base64.b64decode(node.run(words)))
