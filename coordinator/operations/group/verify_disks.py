"""Look whether instances have all their disks, and note which copies are behind."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from common.errors import GntError
from common.messages import Order
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.names import DiskId, InstanceName, NodeId, NodeName
from common.noderpc.disks import Disks, DiskSpec
from coordinator.disks.diagnosis import MirrorState, Side, Told, diagnose, mark
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step, record
from coordinator.operations.steps.edits import SeenCopies, note_seen
from coordinator.operations.steps.syncing import ask_mirrors
from coordinator.state.config import Config


class Missing(Order):
    instance: InstanceName
    node: NodeName
    path: str


class VerifyDisksPlan(Order, kw_only=True):
    """What was seen: nodes that do not answer, disks that are missing, copies to be noted."""

    silent: dict[NodeName, str] = {}
    inactive: tuple[InstanceName, ...] = ()
    missing: tuple[Missing, ...] = ()
    seen: tuple[SeenCopies, ...] = ()
    now: float


@operation("OP_GROUP_VERIFY_DISKS")
class VerifyDisksOfGroup(Operation[None, VerifyDisksPlan], kw_only=True):
    """Look for disks of a group's instances; a part of OP_CLUSTER_VERIFY_DISKS.

    It changes no disk, and waits for no job: a note that something else has made since it looked
    stays as it is.
    """

    group_name: Annotated[str, argument("group to look at")]

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(groups=[config.group(self.group_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> VerifyDisksPlan:
        config = cluster.config
        group = config.group(self.group_name)
        nodes = [node for node in config.sorted_nodes() if node.group == group.uuid]
        online = [node for node in nodes if node.vm_capable and not node.offline]
        answers = await cluster.each({node.uuid: _ask(cluster, config, node) for node in online})
        instances = [
            instance
            for instance in config.made_instances
            if config.nodes[instance.primary_node].group == group.uuid
        ]
        told = {n: a[1] for n, a in answers.items() if not isinstance(a, GntError)}
        inactive, seen = [], []
        for instance in instances:
            found, noted = _look(cluster, config, instance, told)
            inactive += [instance.name] if found else []
            seen += noted
        return VerifyDisksPlan(
            silent={
                config.nodes[node].name: answer.message
                for node, answer in answers.items()
                if isinstance(answer, GntError)
            },
            inactive=tuple(inactive),
            missing=tuple(_missing(cluster, config, instances, answers)),
            seen=tuple(seen),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: VerifyDisksPlan) -> Iterator[Step]:  # noqa: ARG002
        if plan.seen:
            yield record(
                "note which copies are behind",
                note_seen(plan.seen, plan.now),
                point_of_no_return=True,
            )

    def result(self, plan: VerifyDisksPlan) -> Any:
        missing: dict[str, list[list[str]]] = {}
        for each in plan.missing:
            missing.setdefault(each.instance, []).append([each.node, each.path])
        return [plan.silent, list(plan.inactive), missing]


Answers = Mapping[NodeId, "tuple[frozenset[DiskId], Told] | GntError"]


async def _ask(cluster: Cluster, config: Config, node: Node) -> tuple[frozenset[DiskId], Told]:
    disks = _disks_on(config, node)
    found = await cluster.call(Disks, node).find(disks=disks) if disks else ()
    present = (disk.id for disk, report in zip(disks, found, strict=True) if report is not None)
    return frozenset(present), await ask_mirrors(cluster, node)


def _disks_on(config: Config, node: Node) -> tuple[DiskSpec, ...]:
    return tuple(
        disk_spec(config, instance, disk)
        for instance in config.made_instances
        if node.uuid in config.nodes_of(instance)
        for disk in config.disks_of(instance)
    )


def _look(
    cluster: Cluster, config: Config, instance: Instance, told: Mapping[NodeId, Told]
) -> tuple[bool, list[SeenCopies]]:
    """Tell whether an instance's disks want to be activated, and which copies are to be noted."""
    if not instance.disk_template.traits.is_mirrored:
        return False, []
    home, second = (Side(config.nodes[uuid], told.get(uuid)) for uuid in config.nodes_of(instance))
    inactive, seen = False, []
    for index, disk in enumerate(config.disks_of(instance)):
        found = diagnose(instance.name, disk, home, second)
        if found.text:
            cluster.log(f"Disk {index} of {instance.name} {found.text}.")
        is_up = instance.admin_state is AdminState.UP
        inactive |= is_up and found.state in (MirrorState.PARTED, MirrorState.AT_REST)
        if noted := mark(disk, home, second):
            seen.append(
                SeenCopies(
                    disk=noted.disk,
                    serial_no=noted.serial_no,
                    behind=noted.behind,
                    good=noted.good,
                )
            )
    return inactive, seen


def _missing(
    cluster: Cluster, config: Config, instances: list[Instance], answers: Answers
) -> Iterator[Missing]:
    for instance in instances:
        for uuid in config.nodes_of(instance):
            answer = answers.get(uuid)
            if answer is None or isinstance(answer, GntError):
                continue
            for index, disk in enumerate(config.disks_of(instance)):
                if disk.uuid not in answer[0]:
                    node = config.nodes[uuid].name
                    cluster.log(f"Disk {index} of {instance.name} is missing on {node}.")
                    for path in disk.backing.paths:
                        yield Missing(instance=instance.name, node=node, path=path)
