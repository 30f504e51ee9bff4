"""Giving an instance disks of another template, with what is on those that it has."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.node import Node, NodeRef
from common.model.template import DiskTemplate
from common.noderpc.copies import Rate
from common.noderpc.instances import GuestSpec
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.disks.wish import DiskWish
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.convert_in_place import (
    InPlace,
    as_large_as_found,
    clear_up,
    disks_in_place,
    make_ready,
    plan_in_place,
)
from coordinator.operations.instance.new_disk import new_disks
from coordinator.operations.instance.second_copy import find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.placement.fit import check_still_fits
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, naming
from coordinator.operations.specs import guest_spec, present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import (
    check_online,
    check_takes_instances,
    warn_of_groups,
)
from coordinator.operations.steps.copies import DiskCopy, copy_disk, side_of
from coordinator.operations.steps.disks import create_disk, delete_left_disk, homes
from coordinator.operations.steps.mirrors import join_copies
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.state.config import Config


class Filling(Order, kw_only=True):
    """New disks of a stopped instance, the nodes that have them, and what they are filled with."""

    homes_before: tuple[NodeRef, ...]
    homes: tuple[NodeRef, ...]
    guest: GuestSpec  # as it will be
    copies: tuple[DiskCopy, ...]


class Conversion(Order, kw_only=True):
    """The disks of a stopped instance, before and after, and how these come to be."""

    before: tuple[Disk, ...]
    after: tuple[Disk, ...]
    in_place: InPlace | None = None  # they are the same, with a copy more or less
    filling: Filling | None = None


class Keeping(NamedTuple):
    """How the disks of an instance are to be kept from now on.

    Attributes:
        template: in which way.
        secondary: the node for second copies; None where there are none.
        wish: what is asked of disks that are made.
        waits: whether a second copy has to be up to date before it is done.
        rate: at most of what is copied, in MiB per second; 0: as fast as it goes.
    """

    template: DiskTemplate
    secondary: str | None
    wish: DiskWish
    waits: bool
    rate: Rate


async def plan_conversion(cluster: Cluster, instance: Instance, keeping: Keeping) -> Conversion:
    """Return the disks that an instance gets for those that it has, and how they come to be.

    Raises:
        Conflict: it is not stopped, or has such disks already.
        InvalidRequest: such disks cannot be made of those that it has, or not at that rate.
        NoCapacity: there is no space for them.
    """
    config, new = cluster.config, kind_of(keeping.template)
    _check_makes_sense(config, instance, new)
    new.check_wish(keeping.wish)
    check_settled(cluster, instance)
    nodes = _nodes(config, instance, new, keeping.secondary)
    check_online(nodes[0])
    for node in nodes[1:]:
        check_takes_instances(node)
    warn_of_groups(cluster, instance.name, nodes)
    before, devices = config.disks_of(instance), free_devices(cluster)
    check_no_snapshots(instance, before, "converted")
    stay = disks_in_place(config, instance, new, nodes, devices, waits=keeping.waits)
    after = stay
    if not stay:
        alike = [DiskRequest.like(disk, keeping.wish) for disk in before]
        after = new_disks(cluster, new, instance.uuid, [n.uuid for n in nodes], alike, devices)
    planned = PlannedInstance(with_disks(instance, keeping.template, after), after)
    # Nobody else is given the numbers of its devices while nodes are asked.
    cluster.promise(naming(planned))
    if stay:
        planned = planned._replace(disks=await as_large_as_found(cluster, instance, stay))
    await check_still_fits(cluster, planned, nodes, built_in=False)
    conversion = Conversion(before=before, after=planned.disks)
    if not stay:
        filling = await _plan_filling(cluster, planned, nodes, keeping.rate)
        return replace(conversion, filling=filling)
    in_place = plan_in_place(cluster, instance, planned, waits=keeping.waits)
    if keeping.rate and in_place.adds:
        raise InvalidRequest(
            f"The second copy of {instance.name} is made by DRBD, which --rate-limit does not "
            "reach: limit it by the disk parameter resync-rate, with “gnt-group modify -D”."
        )
    return replace(conversion, in_place=in_place)


def with_disks(instance: Instance, template: DiskTemplate, disks: Sequence[Disk]) -> Instance:
    """Return an instance with disks that are kept in another way."""
    return replace(instance, disk_template=template, disks=tuple(disk.uuid for disk in disks))


def read_provider(given: Mapping[str, str]) -> DiskWish:
    """Return what is asked of new disks of external storage: by whom, and what that is told."""
    told = {name: value for name, value in given.items() if name != "provider"}
    return DiskWish(provider=given.get("provider", ""), provider_parameters=told)


def make_and_fill(cluster: Cluster, conversion: Conversion) -> Iterator[Step]:
    """Make the new disks, with what is on the old ones."""
    if conversion.in_place:
        yield from make_ready(cluster, conversion.in_place)
    if plan := conversion.filling:
        for copy in plan.copies:
            yield create_disk(cluster, copy.index, copy.target.disk, plan.homes)
        if len(plan.homes) > 1:
            yield join_copies(cluster, plan.guest, plan.homes)
        for copy in plan.copies:
            yield copy_disk(cluster, copy)


def delete_old(cluster: Cluster, conversion: Conversion) -> Iterator[Step]:
    """Delete the old disks, when the instance has the new ones."""
    if conversion.in_place:
        yield from clear_up(cluster, conversion.in_place)
    if plan := conversion.filling:
        for copy in plan.copies:
            for node in plan.homes_before:
                yield delete_left_disk(cluster, copy.index, copy.source.disk, node)


async def _plan_filling(
    cluster: Cluster, planned: PlannedInstance, nodes: Sequence[Node], rate: Rate
) -> Filling:
    """Return how what is on the disks of an instance comes to the new ones that are planned."""
    config, after = cluster.config, planned.instance
    before = config.instances[after.uuid]
    old, new = kind_of(before.disk_template), kind_of(after.disk_template)
    refs = tuple(node.ref for node in nodes)
    guest = guest_spec(config, after, planned.disks, config.nics_of(before))
    present = present_guest(config, before)
    read_on = (await find_cast(cluster, before, nodes[0], present)).nodes
    copies = tuple(
        DiskCopy(
            index=index,
            source=side_of(old, read_on, there),
            target=side_of(new, refs, here),
            rate=rate,
        )
        for index, (there, here) in enumerate(zip(present.disks, guest.disks, strict=True))
    )
    homes_before = homes(config, before, nodes[0].ref)
    return Filling(homes_before=homes_before, homes=refs, guest=guest, copies=copies)


def _check_makes_sense(config: Config, instance: Instance, new: DiskKind) -> None:
    old = kind_of(instance.disk_template)
    check_enabled(config.cluster, new.template)
    if new.template is old.template:
        raise Conflict(f"Instance {instance.name} has {new.template} disks already.")
    for kind in (old, new):
        if not kind.traits.has_disks or kind.traits.is_adopted:
            raise InvalidRequest(
                f"Disks cannot be made from {old.template} to {new.template}: those of the "
                f"template {kind.template} are not made by Gantry."
            )
    if instance.admin_state is AdminState.UP:
        raise Conflict(
            f"The disks of {instance.name} are made anew while it is stopped only: stop it with "
            f"“gnt-instance shutdown {instance.name}”.",
            instance=instance.name,
        )


def _nodes(
    config: Config, instance: Instance, new: DiskKind, secondary: str | None
) -> Sequence[Node]:
    primary = config.nodes[instance.primary_node]
    if not new.traits.is_mirrored:
        if secondary:
            raise InvalidRequest(f"An instance with {new.template} disks has no secondary node.")
        return [primary]
    if not secondary:
        raise InvalidRequest(f"Name the node for the second copy of {new.template} disks with -n.")
    other = config.node(secondary)
    if other == primary:
        raise Conflict(f"{other.name} is the primary node of {instance.name}; name another one.")
    return [primary, other]
