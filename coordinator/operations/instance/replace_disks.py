"""Replace copies of an instance's mirrored disks."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from common.errors import InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, EarlyRelease, InstanceArgument
from coordinator.operations.instance.place import Place, another_if_stale, place_of
from coordinator.operations.instance.remaking import remake
from coordinator.operations.instance.replacement import (
    check_mirrored,
    find_faulty,
    plan_in_place,
    plan_new_secondary,
)
from coordinator.operations.instance.replacing import (
    ReplacePlan,
    replace_in_place,
    replace_node,
)
from coordinator.operations.instance.reserved_moves import (
    ReservedMove,
    check_copies,
    move_reserved,
    plan_secondary,
)
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.choose import place_elsewhere
from coordinator.operations.placement.growth import promise_of_secondary
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config


class ReplaceMode(StrEnum):
    """Which copies; names are Ganeti's."""

    ON_PRIMARY = "replace_on_primary"
    ON_SECONDARY = "replace_on_secondary"
    NEW_SECONDARY = "replace_new_secondary"
    AUTO = "replace_auto"


class Replacement(Order):
    """New copies; or of what is only reserved, another node that keeps room for them."""

    copies: ReplacePlan | None = None
    reserved: ReservedMove | None = None


@operation("OP_INSTANCE_REPLACE_DISKS")
class ReplaceDisks(Operation[Place | None, Replacement], kw_only=True):
    """Make new copies of mirrored disks; old ones are kept until the new ones are up to date."""

    takes_reservations: ClassVar[bool] = True

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
        check_mirrored(instance)
        if self._mode() is not ReplaceMode.NEW_SECONDARY:
            check_copies(instance)
            return None
        if self.disks:
            raise InvalidRequest("All disks get the new secondary node; leave out --disks.")
        if self.remote_node:
            return Place(node=config.node(self.remote_node).ref)
        allocators = allocators_for(
            config.cluster, RequestType.RELOCATE, self.iallocator, instead="a node with -n"
        )
        chosen = await place_elsewhere(cluster, allocators, instance)
        return place_of(chosen.nodes, chosen.allocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> Replacement:
        instance = cluster.config.instance(self.instance_name)
        check_mirrored(instance)
        if instance.forthcoming and place:
            with another_if_stale(cluster, place):
                target = place.find(cluster.config)
                return Replacement(reserved=await plan_secondary(cluster, instance, target))
        return Replacement(copies=await self._plan(cluster, instance, place))

    async def _plan(self, cluster: Cluster, instance: Instance, place: Place | None) -> ReplacePlan:
        config = cluster.config
        check_settled(cluster, instance)
        if place is not None:
            return await plan_new_secondary(cluster, instance, place, early=self.early_release)
        home, second = (config.nodes[uuid] for uuid in config.nodes_of(instance))
        check_online(home)
        check_online(second)
        mode, indices = self._mode(), self._indices(len(instance.disks))
        target = home if mode is ReplaceMode.ON_PRIMARY else second
        if mode is ReplaceMode.AUTO:
            target, indices = await find_faulty(cluster, instance, home, second, indices)
            if not indices:
                cluster.log(f"No copy of {instance.name} is faulty.")
        source = second if target is home else home
        return await plan_in_place(cluster, instance, source, target, indices)

    def intends(self, cluster: Cluster, place: Place | None) -> Iterable[Promise]:
        config = cluster.config
        instance = config.find_instance(self.instance_name)
        node = config.nodes.get(place.node.uuid) if place else None
        if instance is None or node is None:
            return ()
        return [promise_of_secondary(instance, config.disks_of(instance), node)]

    def promises(self, plan: Replacement) -> Iterable[Promise]:
        made = (plan.copies, plan.reserved)
        return [each.promise for each in made if each is not None]

    def recipe(self, cluster: Cluster, plan: Replacement) -> Iterator[Step]:
        if plan.reserved:
            yield from move_reserved(plan.reserved)
        if (copies := plan.copies) and copies.indices:
            way = remake if copies.is_lost else replace_in_place
            yield from (replace_node if copies.old else way)(cluster, copies)

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
