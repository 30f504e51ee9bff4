"""What guests have written goes where they go."""

from collections.abc import Sequence

from common.model.disk import Disk
from common.model.instance import Instance
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId
from common.noderpc.disks import DiskSpec
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.state.state import State
from tests.support.cluster import SimulatedCluster
from tests.support.machine import Machine

Words = dict[DiskId, str]


class KeptData:
    """Has every guest write a word on each disk as soon as it has it, and looks for it later.

    That of mirrored disks is looked after by those who pretend to mirror them.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._words: dict[InstanceId, tuple[DiskTemplate, Words]] = {}  # in the order of disks

    def check(self, state: State) -> None:
        """Look at the disks of all instances, where a state says that they are."""
        config = state.config
        is_quiet = all(job.status.is_final for job in state.jobs.values())
        half_removed, anew = _half_removed(state), _installed_anew(state)
        for instance in config.instances.values():
            if instance.forthcoming or instance.disk_template.traits.is_mirrored:
                self._words.pop(instance.uuid, None)
                continue
            disks = config.disks_of(instance)
            words = self._wanted(instance, disks)
            machine = self._cluster.machines[config.nodes[instance.primary_node].name]
            for disk in disks:
                may_be_gone = not is_quiet or instance.name in half_removed
                if _has(machine, disk) or not may_be_gone:
                    _check(machine, instance, disk, words, is_new=instance.name in anew)
            self._words[instance.uuid] = instance.disk_template, words

    def _wanted(self, instance: Instance, disks: Sequence[Disk]) -> Words:
        """Return what is to be on disks that were there before, in whatever way they are kept."""
        template, before = self._words.get(instance.uuid, (instance.disk_template, {}))
        if template is not instance.disk_template and len(before) == len(disks):
            return dict(zip((disk.uuid for disk in disks), before.values(), strict=True))
        return {disk.uuid: before[disk.uuid] for disk in disks if disk.uuid in before}


def _half_removed(state: State) -> set[str]:
    """Return the instances that somebody wanted to be gone, and that are there again or still.

    A removal does not go back behind a deleted disk, and ends where a node says that it failed.
    """
    return _later_names(
        state,
        {
            op.input["instance_name"]
            for job in state.jobs.values()
            if job.status is Status.ERROR
            for op in job.ops
            if op.input["OP_ID"] == RemoveInstance.opcode
        },
    )


def _installed_anew(state: State) -> set[str]:
    """Return the instances on whose disks a script may have written since a guest did."""
    return _later_names(
        state,
        {
            op.input["instance_name"]
            for job in state.jobs.values()
            for op in job.ops
            if op.input["OP_ID"] == ReinstallInstance.opcode
        },
    )


def _later_names(state: State, names: set[str]) -> set[str]:
    """Return names of instances, and those that these may have been given since."""
    renamed = [
        (op.input["instance_name"], op.input["new_name"])
        for _, job in sorted(state.jobs.items())
        for op in job.ops
        if op.input["OP_ID"] == RenameInstance.opcode
    ]
    for before, after in renamed:
        names |= {after} if before in names else set()
    return names


def _check(machine: Machine, instance: Instance, disk: Disk, words: Words, *, is_new: bool) -> None:
    spec = DiskSpec(id=disk.uuid, instance=instance.uuid, size=disk.size, backing=disk.backing)
    if disk.uuid not in words:
        words[disk.uuid] = f"data of {disk.uuid}"
        machine.written.write(spec, words[disk.uuid])
    found = machine.written.read(spec)
    if is_new and found.endswith(f" for {instance.name}"):
        words[disk.uuid] = found
    wanted = words[disk.uuid]
    assert found == wanted, f"{instance.name} has {found!r} on its disk, and wrote {wanted!r}"


def _has(machine: Machine, disk: Disk) -> bool:
    there = {*machine.files.disks, *machine.shared.disks, *machine.volumes.names()}
    return not there.isdisjoint(disk.backing.paths)
