"""Record how large disks are on their nodes, where it is otherwise in the configuration."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec.structs import replace

from common.errors import GntError
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.names import DiskId, InstanceName, MiB, NodeId
from coordinator.disks.exclusive import is_exclusive
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.disk_status import OnNode, look_at_disks
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument
from coordinator.operations.step import Edit, Step, record
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State


class OtherSize(Order, kw_only=True):
    """A disk that has another size than was recorded when it was as ``serial_no`` says.

    Or it is on another number of physical volumes, where storage is exclusive; None: as it was.
    """

    instance: InstanceName
    index: int
    disk: DiskId
    serial_no: int
    size: MiB | None = None
    spindles: int | None = None


class RepairSizesPlan(Order, kw_only=True):
    found: tuple[OtherSize, ...]
    now: float


@operation("OP_CLUSTER_REPAIR_DISK_SIZES")
class RepairDiskSizes(Operation[None, RepairSizesPlan], kw_only=True):
    """Record the sizes that disks have, and their spindles; no disk is changed.

    It waits for no job: the size of a disk that something else has changed since it was looked at
    stays as it is.
    """

    instances: Annotated[
        tuple[InstanceName, ...], argument("names of instances (all)", syntax=Syntax.WORDS)
    ] = ()

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it changes no disk
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> RepairSizesPlan:
        config = cluster.config
        named = tuple(config.instance(name) for name in self.instances)
        chosen = tuple(each for each in named or config.made_instances if not each.forthcoming)
        told = dict[NodeId, OnNode]()
        for node, answer in (await look_at_disks(cluster, chosen)).items():
            if isinstance(answer, GntError):
                cluster.log(f"{config.nodes[node].name} did not tell of its disks: {answer}")
            else:
                told[node] = answer
        found = [each for i in chosen for each in _other_sizes(cluster, config, i, told)]
        return RepairSizesPlan(found=tuple(found), now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RepairSizesPlan) -> Iterator[Step]:  # noqa: ARG002
        if plan.found:
            yield record(
                "record the sizes that disks have",
                _set_sizes(plan.found, plan.now),
                point_of_no_return=True,
            )

    def result(self, plan: RepairSizesPlan) -> list[tuple[str, int, str, int]]:
        """Return what has changed, as Ganeti does: instance, disk, “size”, and the size."""
        return [
            (each.instance, each.index, what, value)
            for each in plan.found
            for what, value in (("size", each.size), ("spindles", each.spindles))
            if value is not None
        ]


def _other_sizes(
    cluster: Cluster, config: Config, instance: Instance, told: Mapping[NodeId, OnNode]
) -> Iterator[OtherSize]:
    for index, disk in enumerate(config.disks_of(instance)):
        what = f"Disk {index} of {instance.name}"
        sizes = _sizes(config, instance, disk, told)
        if sizes is None:
            cluster.log(f"{what} is not known to be there, and stays as it is recorded.")
            continue
        if len(set(sizes.values())) > 1:
            each = ", ".join(f"{size} MiB on {config.nodes[n].name}" for n, size in sizes.items())
            cluster.log(
                f"{what} has copies of several sizes, and the smallest counts: {each}. “gnt-"
                f"instance grow-disk --absolute {instance.name} {index} {max(sizes.values())}” "
                "makes them equal."
            )
        # A guest can use what all copies have.
        if (size := min(sizes.values())) != disk.size:
            cluster.log(f"{what} has {size} MiB, and {disk.size} were recorded.")
        if spindles := _other_spindles(config, disk, told):
            before = disk.spindles or "no"
            cluster.log(f"{what} has {spindles} spindles, and {before} were recorded.")
        if size != disk.size or spindles:
            yield OtherSize(
                instance=instance.name,
                index=index,
                disk=disk.uuid,
                serial_no=disk.serial_no,
                size=size if size != disk.size else None,
                spindles=spindles,
            )


def _other_spindles(config: Config, disk: Disk, told: Mapping[NodeId, OnNode]) -> int | None:
    """Return on how many physical volumes a disk is, if storage is exclusive and it is another."""
    if not any(is_exclusive(config, node) for node in disk.nodes):
        return None
    found = {told[node].spindles.get(disk.uuid) for node in disk.nodes if node in told}
    spindles = found.pop() if len(found) == 1 else None
    return spindles if spindles != disk.spindles else None


def _sizes(
    config: Config, instance: Instance, disk: Disk, told: Mapping[NodeId, OnNode]
) -> dict[NodeId, MiB] | None:
    """Return how large each copy of a disk is; None if that is not known of all."""
    nodes = disk.nodes or config.nodes_of(instance)[:1]
    sizes: dict[NodeId, MiB] = {}
    for node in nodes:
        if node not in told or (size := told[node].sizes.get(disk.uuid)) is None:
            return None
        sizes[node] = size
    return sizes


def _set_sizes(found: tuple[OtherSize, ...], now: float) -> Edit:
    def edit(state: State) -> list[Put]:
        changes = []
        for each in found:
            disk = state.config.disks.get(each.disk)
            if disk is not None and disk.serial_no == each.serial_no:
                new = {"size": each.size, "spindles": each.spindles}
                told = {what: value for what, value in new.items() if value is not None}
                serial_no = disk.serial_no + 1
                changes.append(Put(replace(disk, **told, mtime=now, serial_no=serial_no)))
        return changes

    return edit
