"""Faults in how disks grow, come and go."""

from tests.mutate.fault import Fault

GROWING, CHANGED = "tests/sim/test_growing.py", "tests/sim/test_changed_disks.py"
ACTIVE, GUESTS = "tests/sim/test_active_disks.py", "tests/contract/test_disks_of_guests.py"
AT_ONCE = "tests/sim/test_space_asked_at_once.py"
TURNS = "tests/unit/noded/storage/test_lvm_turns.py"

DISKS = (
    Fault(
        "groups renamed in as told", "two who rename in the same groups do not wait for ever",
        "noded/storage/lvm/linux.py",
        "sorted({volume.place.group for volume in every})",
        "dict.fromkeys(volume.place.group for volume in every)",
        (TURNS,),
    ),
    Fault(
        "groups taken as told", "two who want volumes in the same groups do not wait for ever",
        "noded/storage/lvm/linux.py",
        "asked = sorted({new.volume.place.group for new in wanted})",
        "asked = list(dict.fromkeys(new.volume.place.group for new in wanted))",
        (TURNS,),
    ),
    Fault(
        "space not looked for", "a disk grows only where there is space on all its nodes",
        "coordinator/operations/placement/growth.py",
        "        check_free_space(look, node, planned)\n", "        pass\n",
        (GROWING,),
    ),
    Fault(
        "other disks for the same ones", "new disks take space while the old ones take theirs",
        "coordinator/operations/placement/room.py",
        "sizes.get(disk.uuid, -1)", "sum(sizes.values())",
        (AT_ONCE,),
    ),
    Fault(
        "missing disks count as there", "disks that are made anew take space",
        "coordinator/operations/placement/room.py",
        "for disk in one.disks} - one.anew", "for disk in one.disks}",
        (AT_ONCE,),
    ),
    Fault(
        "missing disks are not made anew", "others count with disks that are made anew",
        "coordinator/operations/placement/room.py",
        "present is None or one.anew or", "present is None or",
        (AT_ONCE,),
    ),
    Fault(
        "space promised before it is looked for", "of two who ask at once one is given space",
        "coordinator/operations/instance/recreate_disks.py",
        "cluster.promise(naming(planned))", "cluster.promise(promise_of_space(planned))",
        (AT_ONCE,),
    ),
    Fault(
        "shared disk without a lock", "a node stays while a disk is deleted from there",
        "coordinator/operations/cluster/remove_disk.py",
        "nodes=[node.uuid for node in _nodes(config, disk)]", "nodes=disk.nodes",
        ("tests/sim/test_operations.py detached",),
    ),
    Fault(
        "two disks of one name", "a name means one disk of an instance",
        "coordinator/operations/devices.py",
        "times > max(1, had[name])", "times > max(2, had[name])",
        (CHANGED,),
    ),
    Fault(
        "growth not told", "a guest sees its disk grow",
        "noded/hypervisor/kvm/disk_plugging.py",
        ".size >= disk.size * MIB:", ".size:",
        (GUESTS,),
    ),
    Fault(
        "file cut to what was ordered", "a disk never shrinks",
        "noded/hypervisor/kvm/disk_plugging.py",
        "            size = size_of(descriptor)\n", "            size = disk.size * MIB\n",
        (GUESTS,),
    ),
    Fault(
        "descriptor left open", "a disk that is given up is closed",
        "noded/hypervisor/kvm/disk_plugging.py",
        "            if node.fdset is not None:", "            if False:",
        (GUESTS,),
    ),
    Fault(
        "slots by the order of disks", "a guest moves with its disks where they are",
        "coordinator/operations/instance/as_it_runs.py",
        "slots=found.disks or {}", "slots={}",
        (CHANGED,),
    ),
    Fault(
        "data deleted with its metadata", "what is not mirrored after all keeps its data",
        "coordinator/operations/instance/convert_in_place.py",
        "disks.ensure_absent(disk=_metadata_of(disk))", "disks.ensure_absent(disk=disk)",
        ("tests/sim/test_operations.py second",),
    ),
    Fault(
        "mirrored without its end", "as much is mirrored as a guest could use before",
        "coordinator/operations/instance/convert_in_place.py",
        "max(disk.size, report.size)", "disk.size",
        ("tests/sim/test_conversions.py",),
    ),
    Fault(
        "space given away twice", "the space for copies beside others is nobody else's",
        "coordinator/operations/placement/room.py",
        "coming[promise.node] += self.taken(promise.beside)", "coming[promise.node] += Counter()",
        ("tests/sim/test_replaced_copies.py",),
    ),
    Fault(
        "several nodes repaired", "only one node at a time is repaired by itself",
        "coordinator/operations/group/repair_storage.py",
        "if len(lacking) > 1:", "if len(lacking) > 9:",
        ("tests/sim/test_replaced_copies.py",),
    ),
    Fault(
        "attached by two at once", "a detached disk goes to one instance",
        "coordinator/operations/instance/instance_change.py",
        "room=room, disks=come, networks", "room=room, networks",
        (CHANGED,),
    ),
    Fault(
        "adopted twice", "a device that is there becomes the disk of one instance",
        "coordinator/operations/placement/fit.py",
        "promise._replace(disks=adopted, nics=nics", "promise._replace(nics=nics",
        ("tests/sim/test_adoption.py same_time",),
    ),
    Fault(
        "attached twice", "an instance has each disk once",
        "coordinator/operations/instance/disk_changes.py",
        "        if found in self._attached:\n", "        if False:\n",
        (CHANGED,),
    ),
    Fault(
        "numbers of disks promised late", "what becomes mirrored at once has numbers of its own",
        "coordinator/operations/instance/convert.py",
        "    cluster.promise(naming(planned))\n", "",
        ("tests/sim/test_conversions.py same_numbers",),
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
