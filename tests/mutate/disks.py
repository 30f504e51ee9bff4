"""Faults in how disks grow, come and go."""

from tests.mutate.fault import Fault

GROWING, CHANGED = "tests/sim/test_growing.py", "tests/sim/test_changed_disks.py"
ACTIVE, GUESTS = "tests/sim/test_active_disks.py", "tests/contract/test_disks_of_guests.py"

DISKS = (
    Fault(
        "space not looked for", "a disk grows only where there is space on all its nodes",
        "coordinator/operations/placement/growth.py",
        "        check_free_space(look, node, planned)\n", "        pass\n",
        (GROWING,),
    ),
    Fault(
        "growth not told", "a guest sees its disk grow",
        "noded/hypervisor/kvm/plugging.py",
        ".size >= disk.size * MIB:", ".size:",
        (GUESTS,),
    ),
    Fault(
        "file cut to what was ordered", "a disk never shrinks",
        "noded/hypervisor/kvm/plugging.py",
        "            size = size_of(descriptor)\n", "            size = disk.size * MIB\n",
        (GUESTS,),
    ),
    Fault(
        "descriptor left open", "a disk that is given up is closed",
        "noded/hypervisor/kvm/plugging.py",
        "            if node.fdset is not None:", "            if False:",
        (GUESTS,),
    ),
    Fault(
        "slots by the order of disks", "a guest moves with its disks where they are",
        "coordinator/operations/instance/migrate.py",
        "slots=found.disks or {}", "slots={}",
        (CHANGED,),
    ),
    Fault(
        "attached by two at once", "a detached disk goes to one instance",
        "coordinator/operations/instance/modify.py",
        "room=room, disks=come)", "room=room)",
        (CHANGED,),
    ),
    Fault(
        "taken from who uses it", "what a guest uses is taken from it only when it lets go",
        "coordinator/operations/instance/disk_steps.py",
        "    if is_alive(found) and changes.gone and not tells:", "    if False:",
        (CHANGED,),
    ),
    Fault(
        "made anew over what is there", "only what is missing is made anew",
        "coordinator/operations/instance/recreate_disks.py",
        "if there := [name for name, disks in found.items() if disks[index]]:",
        "if there := [name for name in found if not name]:",
        (ACTIVE,),
    ),
)  # fmt: skip
