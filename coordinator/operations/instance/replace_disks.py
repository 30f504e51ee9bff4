"""Replace copies of an instance's mirrored disks."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import NodeId
from common.noderpc.disks import Access, Disks
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, Link, MirrorReport, Mirrors
from coordinator.disks.drbd import again_on
from coordinator.disks.mirrors import in_words
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, EarlyRelease, InstanceArgument
from coordinator.operations.instance.place import Place, another_if_stale, place_of
from coordinator.operations.instance.replacing import (
    ReplacePlan,
    replace_in_place,
    replace_node,
)
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.choose import place_secondary
from coordinator.operations.placement.growth import promise_beside, take_space_beside
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.secondary import promise_of_secondary, take_secondary
from coordinator.operations.specs import disk_spec, present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online, check_takes_instances
from coordinator.state.config import Config


class ReplaceMode(StrEnum):
    """Which copies; names are Ganeti's."""

    ON_PRIMARY = "replace_on_primary"
    ON_SECONDARY = "replace_on_secondary"
    NEW_SECONDARY = "replace_new_secondary"
    AUTO = "replace_auto"


@operation("OP_INSTANCE_REPLACE_DISKS")
class ReplaceDisks(Operation[Place | None, ReplacePlan], kw_only=True):
    """Make new copies of mirrored disks; old ones are kept until the new ones are up to date."""

    instance_name: InstanceArgument
    on_primary: Annotated[
        bool,
        option("-p", "--on-primary", help="new copies on the primary node", syntax=Syntax.FLAG),
    ] = False
    on_secondary: Annotated[
        bool,
        option("-s", "--on-secondary", help="new copies on the secondary node", syntax=Syntax.FLAG),
    ] = False
    auto: Annotated[
        bool,
        option("-a", "--auto", help="new copies where they are faulty", syntax=Syntax.FLAG),
    ] = False
    remote_node: Annotated[
        str | None, option("-n", "--new-secondary", metavar="NODE", help="another secondary node")
    ] = None
    iallocator: AllocatorOption = None
    disks: Annotated[
        tuple[int | str, ...],
        option("--disks", help="numbers of the disks, with commas (all)", syntax=Syntax.LIST),
    ] = ()
    early_release: EarlyRelease = False
    mode: Annotated[ReplaceMode | None, hidden("Ganeti's: replace_on_primary, …")] = None

    def locks(self, config: Config, place: Place | None) -> Wanted:
        instance = config.instance(self.instance_name)
        target = [place.node.uuid] if place else []
        nodes = [*config.nodes_of(instance), *target]
        return wanted(instance=instance.name, nodes=nodes, room=target or config.nodes_of(instance))

    async def choose(self, cluster: Cluster) -> Place | None:
        config = cluster.config
        instance = config.instance(self.instance_name)
        _check_mirrored(instance)
        if self._mode() is not ReplaceMode.NEW_SECONDARY:
            return None
        if self.disks:
            raise InvalidRequest("All disks get the new secondary node; leave out --disks.")
        if self.remote_node:
            return Place(node=config.node(self.remote_node).ref)
        allocators = allocators_for(
            config.cluster, RequestType.RELOCATE, self.iallocator, instead="a node with -n"
        )
        chosen = await place_secondary(cluster, allocators, instance)
        return place_of(chosen.nodes, chosen.allocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> ReplacePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        _check_mirrored(instance)
        check_settled(cluster, instance)
        home, second = (config.nodes[uuid] for uuid in config.nodes_of(instance))
        check_online(home)
        if place is not None:
            return await self._plan_node(cluster, instance, home, second, place)
        check_online(second)
        mode, indices = self._mode(), self._indices(len(instance.disks))
        if mode is ReplaceMode.AUTO:
            mode, indices = await _find_faulty(cluster, instance, home, second, indices)
            if not indices:
                cluster.log(f"No copy of {instance.name} is faulty.")
        source, target = (second, home) if mode is ReplaceMode.ON_PRIMARY else (home, second)
        guest = _with_disks(present_guest(config, instance), indices)
        disks = [config.disks_of(instance)[index] for index in indices]
        access = await _access(cluster, guest, home)
        await _check_source(cluster, instance, guest, disks, source, needs_link=access is not None)
        await take_space_beside(cluster, instance, tuple(disks), target)
        return ReplacePlan(
            instance=instance,
            guest=guest,
            indices=indices,
            home=home.ref,
            access=access,
            source=source.ref,
            target=target.ref,
            after=guest,
            disks=tuple(disks),
            now=cluster.now(),
        )

    async def _plan_node(
        self, cluster: Cluster, instance: Instance, home: Node, old: Node, place: Place
    ) -> ReplacePlan:
        config = cluster.config
        with another_if_stale(cluster, place):
            target = place.find(config)
            check_takes_instances(target)
            if target.uuid in (home.uuid, old.uuid):
                raise Conflict(f"{instance.name} has copies of its disks on {target.name} already.")
            disks = config.disks_of(instance)
            await take_secondary(cluster, instance, disks, target)
        guest = present_guest(config, instance)
        access = await _access(cluster, guest, home)
        await _check_source(cluster, instance, guest, disks, home, needs_link=False)
        devices, nodes = free_devices(cluster), (home.uuid, target.uuid)
        made = tuple(again_on(disk, nodes, devices) for disk in disks)
        cluster.promise(_promise(instance, made, target.uuid))
        return ReplacePlan(
            instance=instance,
            guest=guest,
            indices=tuple(range(len(disks))),
            home=home.ref,
            access=access,
            source=home.ref,
            target=target.ref,
            old=old.ref,
            reaches_old=not old.offline,
            after=replace(guest, disks=tuple(disk_spec(config, instance, d) for d in made)),
            disks=made,
            early=self.early_release,
            now=cluster.now(),
        )

    def intends(self, cluster: Cluster, place: Place | None) -> Iterable[Promise]:
        config = cluster.config
        instance = config.find_instance(self.instance_name)
        node = config.nodes.get(place.node.uuid) if place else None
        if instance is None or node is None:
            return ()
        return [promise_of_secondary(instance, config.disks_of(instance), node)]

    def promises(self, plan: ReplacePlan) -> Iterable[Promise]:
        promise = _promise if plan.old else promise_beside
        return [promise(plan.instance, plan.disks, plan.target.uuid)]

    def recipe(self, cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
        if plan.indices:
            way = replace_node if plan.old else replace_in_place
            yield from way(cluster, plan)

    def _mode(self) -> ReplaceMode:
        """Return what is asked.

        Raises:
            InvalidRequest: nothing, or several things at once.
        """
        asked = {
            ReplaceMode.ON_PRIMARY: self.on_primary,
            ReplaceMode.ON_SECONDARY: self.on_secondary,
            ReplaceMode.AUTO: self.auto,
            ReplaceMode.NEW_SECONDARY: bool(self.remote_node or self.iallocator),
        }
        modes = {mode for mode, is_asked in asked.items() if is_asked} | {self.mode} - {None}
        if len(modes) != 1 or (self.remote_node and self.iallocator):
            raise InvalidRequest(
                "Say which copies are replaced: --on-primary, --on-secondary, --auto, or with "
                "--new-secondary or --iallocator those on the secondary node, by another one."
            )
        (mode,) = modes
        assert mode is not None
        return mode

    def _indices(self, number: int) -> tuple[int, ...]:
        indices = sorted({_index(word) for word in self.disks}) or range(number)
        if bad := [index for index in indices if not 0 <= index < number]:
            raise InvalidRequest(f"{self.instance_name} has no disk {bad[0]}.")
        return tuple(indices)


def _index(word: int | str) -> int:
    try:
        return int(word)
    except ValueError as error:
        raise InvalidRequest(f"“{word}” is no number of a disk.") from error


def _check_mirrored(instance: Instance) -> None:
    if not instance.disk_template.traits.is_mirrored:
        raise InvalidRequest(
            f"{instance.name} has {instance.disk_template} disks, of which there is one copy only; "
            "“gnt-instance recreate-disks” makes lost ones anew."
        )


def _with_disks(guest: GuestSpec, indices: tuple[int, ...]) -> GuestSpec:
    return replace(guest, disks=tuple(guest.disks[index] for index in indices))


def _promise(instance: Instance, disks: tuple[Disk, ...], target: NodeId) -> Promise:
    planned = PlannedInstance(instance, disks)
    return Promise(instance.uuid, target, planned=planned)


async def _access(cluster: Cluster, guest: GuestSpec, home: Node) -> Access | None:
    """Return how the primary node has the disks."""
    reports = await cluster.call(Mirrors, home).status(disks=guest.disks)
    if any(report and report.primary for report in reports):
        return Access.SOLE
    return Access.STANDBY if all(reports) else None


async def _check_source(
    cluster: Cluster,
    instance: Instance,
    guest: GuestSpec,
    disks: Iterable[Disk],
    source: Node,
    *,
    needs_link: bool,
) -> None:
    """Refuse to replace copies where the ones that stay are not known to be good.

    Raises:
        Conflict: says what is wrong with them.
    """
    reports = await cluster.call(Mirrors, source).status(disks=guest.disks)
    for index, (disk, report) in enumerate(zip(disks, reports, strict=True)):
        problem = "is known to be behind" if source.uuid in disk.behind else ""
        if report is not None and report.own is not CopyState.UP_TO_DATE:
            problem = in_words(report)
        if needs_link and (report is None or report.link is not Link.CONNECTED):
            problem = in_words(report)
        if problem:
            raise Conflict(
                f"The copies of {instance.name} on {source.name} would be the only ones, and disk "
                f"{index} there {problem}.",
                instance=instance.name,
            )


async def _find_faulty(
    cluster: Cluster, instance: Instance, home: Node, second: Node, indices: tuple[int, ...]
) -> tuple[ReplaceMode, tuple[int, ...]]:
    """Return on which side copies are faulty, and which; none if all are well.

    Raises:
        Conflict: on both.
    """
    guest = _with_disks(present_guest(cluster.config, instance), indices)
    faulty = {}
    for node, mode in ((home, ReplaceMode.ON_PRIMARY), (second, ReplaceMode.ON_SECONDARY)):
        found = await cluster.call(Disks, node).find(disks=guest.disks)
        reports = await cluster.call(Mirrors, node).status(disks=guest.disks)
        pairs = zip(indices, found, reports, strict=True)
        faulty[mode] = tuple(index for index, disk, report in pairs if _is_faulty(disk, report))
    bad = [mode for mode, those in faulty.items() if those]
    if len(bad) > 1:
        raise Conflict(
            f"Copies of {instance.name} are faulty on {home.name} and on {second.name}: "
            "“gnt-instance info” shows which. Replace them one by one, with --disks.",
            instance=instance.name,
        )
    return (bad[0], faulty[bad[0]]) if bad else (ReplaceMode.AUTO, ())


def _is_faulty(disk: object, report: MirrorReport | None) -> bool:
    return disk is None or (report is not None and report.own is CopyState.NONE)
