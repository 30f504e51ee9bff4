"""Make disks of an instance anew, empty, where they are missing or on other nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NotFound
from common.messages import Order, from_builtins
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestSpec
from coordinator.disks.kind import NewDisk
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored
from coordinator.disks.parameters import disk_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest, as_one_disk
from coordinator.operations.fields import AllocatorOption, InstanceArgument
from coordinator.operations.instance.adoption import check_made_anew
from coordinator.operations.instance.place import Place, another_if_stale, named_place, place_of
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.apart import check_anew, check_spindles
from coordinator.operations.placement.choose import place_new
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise, naming
from coordinator.operations.specs import guest_spec, present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.operations.steps.checks import (
    check_has_disks,
    check_not_elsewhere,
    check_online,
    check_takes_instances,
    find_guest,
    may_run,
    warn_of_groups,
)
from coordinator.operations.steps.disks import create_disk
from coordinator.operations.steps.mirrors import join_copies, let_go
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.state.config import Config

Wished = int | tuple[int, dict[str, Any]]


class RecreatePlan(Order, kw_only=True):
    """``indices`` are the numbers of the disks that are made anew, ``nodes`` where they will be."""

    nodes: tuple[NodeRef, ...]
    indices: tuple[int, ...]
    before: Instance
    after: Instance
    disks_before: tuple[Disk, ...]
    disks: tuple[Disk, ...]
    guest: GuestSpec
    now: float


@operation("OP_INSTANCE_RECREATE_DISKS")
class RecreateDisks(Operation[Place | None, RecreatePlan], kw_only=True):
    """Make an instance's missing disks anew, empty; also all of them on other nodes."""

    instance_name: InstanceArgument
    disks: Annotated[
        tuple[Wished, ...],
        option(
            "--disk",
            help="which, and what is to be different, as in N:size=SIZE (all that are missing)",
            syntax=Syntax.NUMBERED,
        ),
    ] = ()
    nodes: Annotated[
        tuple[str, ...],
        option(
            "-n", "--node", help="where, as NODE[:SECONDARY]: all disks", syntax=Syntax.NODE_LIST
        ),
    ] = ()
    iallocator: AllocatorOption = None

    def locks(self, config: Config, place: Place | None) -> Wanted:
        instance = config.instance(self.instance_name)
        room = [node.uuid for node in place.nodes] if place else list(config.nodes_of(instance))
        nodes = [*config.nodes_of(instance), *room]
        return wanted(instance=instance.name, nodes=nodes, room=room)

    async def choose(self, cluster: Cluster) -> Place | None:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if self.nodes and self.iallocator:
            raise InvalidRequest("Name the nodes or an allocator, not both.")
        if not self.nodes and not self.iallocator:
            return None
        if self.nodes:
            return named_place(config, instance.disk_template, self.nodes)
        allocators = allocators_for(
            config.cluster, RequestType.ALLOCATE, self.iallocator, instead="nodes with -n"
        )
        planned = PlannedInstance(instance, self._wished(instance, config.disks_of(instance)))
        chosen = await place_new(
            cluster, allocators, planned._replace(nics=config.nics_of(instance))
        )
        return place_of(chosen.nodes, chosen.allocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> RecreatePlan:
        config = cluster.config
        before = config.instance(self.instance_name)
        await _check_is_down(cluster, before)
        disks_before = config.disks_of(before)
        wished = self._wished(before, disks_before)
        if place is None:
            after, nodes, disks = before, _nodes_of(config, before), wished
        else:
            with another_if_stale(cluster, place):
                nodes = place.find_all(config)
            warn_of_groups(cluster, before.name, nodes)
            after, disks = self._elsewhere(cluster, before, wished, nodes)
        planned = PlannedInstance(after, disks)
        cluster.promise(naming(planned))  # nobody else gets the numbers of its devices
        for node in nodes:
            check_online(node) if place is None else check_takes_instances(node)
        guest = guest_spec(config, after, disks, config.nics_of(after))
        found = await _find(cluster, nodes, guest)
        told = [disks[index] for index, values in self._named() if "spindles" in values]
        check_spindles(config, nodes[0], told)
        if place is None:
            indices = self._missing(before, disks, found)
            for node in nodes:
                wanted_anew = [disks[index] for index in indices]
                check_anew(config, node, before.disk_template, wanted_anew)
        else:
            old = [node for node in _nodes_of(config, before) if not node.offline]
            found |= await _find(cluster, old, present_guest(config, before))
            indices = tuple(range(len(disks)))
            _check_absent(before, indices, found)
        with another_if_stale(cluster, place) if place else nullcontext():
            planned = _with_room(after, disks, indices)
            await take_space(cluster, promise_of_space(planned), nodes, for_new=True)
        return RecreatePlan(
            nodes=tuple(node.ref for node in nodes),
            indices=indices,
            before=before,
            after=after,
            disks_before=disks_before,
            disks=disks,
            guest=guest,
            now=cluster.now(),
        )

    def promises(self, plan: RecreatePlan) -> Iterable[Promise]:
        return [promise_of_space(_with_room(plan.after, plan.disks, plan.indices))]

    def recipe(self, cluster: Cluster, plan: RecreatePlan) -> Iterator[Step]:
        for index in plan.indices:
            yield create_disk(cluster, index, plan.guest.disks[index], plan.nodes)
        made = replace(plan.guest, disks=tuple(plan.guest.disks[index] for index in plan.indices))
        if mirrored(made):
            yield join_copies(cluster, made, plan.nodes)
            yield let_go(cluster, made, plan.nodes)
        before, after = (plan.before, *plan.disks_before), (plan.after, *plan.disks)
        if before != after:
            yield change(
                f"record where the disks of {plan.guest.name} are", before, after, plan.now
            )

    def result(self, plan: RecreatePlan) -> list[int]:
        """Return the numbers of the disks that were made."""
        return list(plan.indices)

    def _wished(self, instance: Instance, disks: Sequence[Disk]) -> tuple[Disk, ...]:
        """Return all disks, those that were named with what is to be different."""
        wished = list(disks)
        for index, values in self._named():
            if index >= len(disks):
                raise NotFound(f"Instance {instance.name} has no disk {index}.")
            if values:
                told = {"size": disks[index].size, "mode": disks[index].mode} | as_one_disk(values)
                request = from_builtins(told, DiskRequest, what=f"what disk {index} is to be")
                check_made_anew(kind_of(instance.disk_template), request)
                if request.given() or request.name:
                    raise InvalidRequest(
                        f"Disk {index} of {instance.name} is made anew as it was, but for its size "
                        f"and mode; leave out “{next(iter(request.given()), 'name')}”."
                    )
                changes: dict[str, Any] = {"size": request.size_mib, "mode": request.mode}
                if request.spindle_count is not None:
                    changes["spindles"] = request.spindle_count
                wished[index] = replace(disks[index], **changes)
        return tuple(wished)

    def _named(self) -> list[tuple[int, dict[str, Any]]]:
        return [(each, {}) if isinstance(each, int) else each for each in self.disks]

    def _elsewhere(
        self, cluster: Cluster, instance: Instance, disks: Sequence[Disk], nodes: Sequence[Node]
    ) -> tuple[Instance, tuple[Disk, ...]]:
        """Return an instance as it will be on other nodes."""
        kind = kind_of(instance.disk_template)
        if self.disks and {index for index, _ in self._named()} != set(range(len(disks))):
            raise InvalidRequest(
                f"On other nodes all {len(disks)} disks of {instance.name} are made, not some."
            )
        if kind.traits.is_adopted:
            raise InvalidRequest(f"Disks of the template {kind.template} are not made by Gantry.")
        config, home = cluster.config, nodes[0]
        holders, devices = kind.holders([node.uuid for node in nodes]), free_devices(cluster)
        parameters = disk_parameters(config, config.groups[home.group], kind.template)

        def anew(disk: Disk) -> Disk:
            wish = kind.wish_of(config.cluster, disk.backing)
            new = NewDisk(instance.uuid, disk.uuid, holders, devices, wish, parameters)
            backing = kind.new_backing(config.cluster, new)
            return replace(disk, nodes=holders, behind=(), backing=backing)

        made = tuple(map(anew, disks))
        moved = replace(instance, primary_node=home.uuid, maybe_on=(), disks_active=False)
        return moved, made

    def _missing(
        self, instance: Instance, disks: Sequence[Disk], found: Mapping[str, Sequence[bool]]
    ) -> tuple[int, ...]:
        """Return the disks that are made where they are missing.

        Raises:
            Conflict: one that was named is there, or all are.
        """
        if named := tuple(sorted({index for index, _ in self._named()})):
            _check_absent(instance, named, found)
            return named
        missing = [i for i in range(len(disks)) if not any(there[i] for there in found.values())]
        if not missing:
            where = " and ".join(found)
            raise Conflict(
                f"All disks of {instance.name} are there on {where}, so none is made anew; one "
                "that lacks its second copy gets it by “gnt-instance replace-disks”."
                if len(found) > 1
                else f"All disks of {instance.name} are there on {where}, so none is made anew.",
                instance=instance.name,
            )
        return tuple(missing)


def _with_room(
    instance: Instance, disks: tuple[Disk, ...], indices: Iterable[int]
) -> PlannedInstance:
    """Return an instance as it will be, of which these disks take space once more."""
    return PlannedInstance(instance, disks, anew=frozenset(disks[index].uuid for index in indices))


async def _check_is_down(cluster: Cluster, instance: Instance) -> None:
    """Refuse an instance that runs, shall run, or may run somewhere."""
    check_has_disks(instance)
    check_no_snapshots(instance, cluster.config.disks_of(instance), "made anew")
    check_settled(cluster, instance)
    home = cluster.config.nodes[instance.primary_node]
    runs = not home.offline and may_run(await find_guest(cluster, instance, home))
    if runs or instance.admin_state is AdminState.UP:
        raise Conflict(
            f"Instance {instance.name} {'runs' if runs else 'is to run'}; stop it first, with "
            f"“gnt-instance shutdown {instance.name}”.",
            instance=instance.name,
        )
    await check_not_elsewhere(cluster, instance, home)


def _nodes_of(config: Config, instance: Instance) -> tuple[Node, ...]:
    return tuple(config.nodes[uuid] for uuid in config.nodes_of(instance))


async def _find(cluster: Cluster, nodes: Sequence[Node], guest: GuestSpec) -> dict[str, list[bool]]:
    """Return which disks there are on nodes, by name of the node."""
    found: dict[str, list[bool]] = {}
    for node in nodes:
        reports = await cluster.call(Disks, node).find(disks=guest.disks)
        found[node.name] = [report is not None for report in reports]
    return found


def _check_absent(
    instance: Instance, indices: Iterable[int], found: Mapping[str, Sequence[bool]]
) -> None:
    """Refuse to make what is there: it would have to be deleted first, with all that is on it."""
    for index in indices:
        if there := [name for name, disks in found.items() if disks[index]]:
            raise Conflict(
                f"Disk {index} of {instance.name} is there on {' and '.join(there)}; only what is "
                "missing is made anew.",
                instance=instance.name,
            )
