"""Faults in keeping instances apart on physical volumes."""

from tests.mutate.fault import Fault

PURE = "tests/unit/noded/storage/test_lvm_exclusive.py"
CONTRACT, STORY = "tests/contract/test_volumes_apart.py", "tests/sim/test_exclusive_storage.py"
NODES = "tests/unit/operations/test_spindles_of_nodes.py"
DRIVER = "noded/storage/lvm/exclusive.py"

APART = (
    Fault(
        "physical volumes shared",
        "where storage is exclusive nobody shares a physical volume",
        DRIVER,
        "each for each in group.usable_devices if each.is_empty",
        "each for each in group.usable_devices",
        (PURE, CONTRACT),
    ),
    Fault(
        "same physical volumes again",
        "two disks that are made at once share none",
        DRIVER,
        "its, empty = empty[:count], empty[count:]",
        "its = empty[:count]",
        (PURE, CONTRACT),
    ),
    Fault(
        "physical volumes left empty",
        "a disk takes some of all that is its own",
        "noded/storage/lvm/placing.py",
        "replace(new, stripes=len(devices)) if devices else new",
        "new",
        (PURE,),
    ),
    Fault(
        "growth goes elsewhere",
        "a disk grows on its own physical volumes",
        "noded/storage/lvm/making.py",
        "devices = devices_to_grow_on(volume, size, found.report, found.group)",
        "devices_to_grow_on(volume, size, found.report, found.group)",
        (PURE,),
    ),
    Fault(
        "spindles not promised",
        "two jobs never get the same spindles",
        "coordinator/operations/placement/room.py",
        "return report.spindles.free - self._promised(node)[SpindlesIn(pool)]",
        "return report.spindles.free",
        (NODES,),
    ),
    Fault(
        "any disk anywhere",
        "nodes with exclusive storage take disks alone that keep to it",
        "coordinator/operations/placement/apart.py",
        "if template.traits.is_apart:",
        "if True:",
        (STORY,),
    ),
    Fault(
        "nodes not told",
        "nodes are told how many physical volumes a disk has for itself",
        "coordinator/disks/exclusive.py",
        "        return disk.spindles or 0\n",
        "        return None\n",
        (NODES,),
    ),
)
