"""Keep what is needed to make an instance anew on a node, or send it to another cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.disk import DumpBacking
from common.model.instance import Instance
from common.model.node import NodeRef
from common.names import DiskId
from common.noderpc.copies import Compression
from common.noderpc.disks import DiskSpec
from common.noderpc.exports import Exports
from common.noderpc.instances import GuestSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.holding import Handover, none, sole
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.backup.description import describe
from coordinator.operations.backup.prepare import REMOTE, check_mode
from coordinator.operations.backup.sending import Away
from coordinator.operations.backup.still import source_of, still_disks
from coordinator.operations.backup.trust import Place, trust_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    InstanceArgument,
    RateOption,
    RoomOption,
    ShutdownTimeout,
)
from coordinator.operations.instance.kept import with_snapshots
from coordinator.operations.instance.remove import RemoveInstance, RemovePlan, take_away
from coordinator.operations.instance.second_copy import find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.growth import promise_of_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.between_clusters import SentDisk, send_disks
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.copies import DiskCopy, Side, copy_all, side_of
from coordinator.operations.steps.guests import shut_down_guest, start_guest
from coordinator.operations.steps.snapshots import delete_snapshot, take_snapshots
from coordinator.state.config import Config


class ExportPlan(Order, kw_only=True):
    node: NodeRef  # where the instance is
    target: NodeRef | None  # where the export goes; None: to another cluster
    guest: GuestSpec
    detach: Handover
    attach: Handover
    was_running: bool
    copies: tuple[DiskCopy, ...]
    description: str
    replaces: bool  # an export of before, which is gone when this one is there
    removal: RemovePlan | None
    wait_s: float
    stops: bool = True  # the guest, for the time of the copies, or until there are snapshots
    snapshots: tuple[SnapshotSpec, ...] = ()  # that are copied while the guest goes on
    kept: PlannedInstance | None = None  # the instance, with what these take
    sent: tuple[SentDisk, ...] = ()  # to another cluster


@operation("OP_BACKUP_EXPORT")
class ExportInstance(Operation[None, ExportPlan], kw_only=True):
    """Export an instance: its parameters, and what is on its disks, to a directory of a node."""

    instance_name: InstanceArgument
    target_node: Annotated[str, option("-n", "--node", help="node that keeps the export")]
    compress: Annotated[
        Compression,
        option("--transport-compression", help="make data smaller on its way between nodes"),
    ] = Compression.NONE
    rate_limit: RateOption = 0
    shutdown: Annotated[
        bool,
        option(
            "--noshutdown",
            help="do not stop it, and keep what is on its disks as after a power cut",
            syntax=Syntax.NO_FLAG,
        ),
    ] = True
    room: RoomOption = None
    shutdown_timeout: ShutdownTimeout = 120
    remove_instance: Annotated[
        bool, option("--remove-instance", help="remove it afterwards", syntax=Syntax.FLAG)
    ] = False
    ignore_remove_failures: Annotated[
        bool,
        option(
            "--ignore-remove-failures",
            help="forget it even if its disks cannot be deleted",
            syntax=Syntax.FLAG,
        ),
    ] = False
    mode: Annotated[str, hidden("“local”: to a node, or “remote”: to another cluster")] = "local"
    places: Annotated[
        tuple[Place, ...], hidden("where another cluster expects the disks, as its job tells")
    ] = ()
    x509_key_name: Annotated[tuple[str, str, str] | None, hidden("as OP_BACKUP_PREPARE tells")] = (
        None
    )
    destination_x509_ca: Annotated[str | None, hidden("as the other cluster's job tells")] = None

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(given.get("target_node"), list | tuple):
            return given
        return given | {"target_node": "", "places": given["target_node"]}

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        targets = [] if self.mode == REMOTE else [config.node(self.target_node).uuid]
        nodes = [*config.nodes_of(instance), *targets]
        return wanted(instance=instance.name, nodes=nodes, room=[instance.primary_node])

    async def prepare(self, cluster: Cluster, _: None) -> ExportPlan:
        config = cluster.config
        check_mode(self.mode)
        instance = config.instance(self.instance_name)
        target = None if self.mode == REMOTE else config.node(self.target_node)
        node, kind = config.nodes[instance.primary_node], kind_of(instance.disk_template)
        for each in filter(None, (node, target)):
            check_online(each)
        away = Away(
            places=self.places, key_name=self.x509_key_name, certificate=self.destination_x509_ca
        )
        places = () if target else away.check(trust_of(cluster.state), instance, node)
        check_settled(cluster, instance)
        was_running = may_run(await find_guest(cluster, instance, node))
        if self.remove_instance and not self.shutdown:
            raise InvalidRequest("An instance that is removed has to be shut down before.")
        if not was_running:
            await check_not_elsewhere(cluster, instance, node)
        guest = present_guest(config, instance)
        at = (await find_cast(cluster, instance, node, guest)).nodes
        disks = config.disks_of(instance)
        goes_on = was_running and not self.remove_instance
        snapshots = (
            await still_disks(cluster, instance, guest, self.room, may_stop=self.shutdown)
            if goes_on
            else ()
        )
        kept = None
        if snapshots:
            with_them = with_snapshots(instance, disks, snapshots, "export", cluster.now())
            kept = PlannedInstance(instance, with_them)
        sources = [source_of(node.ref, each) for each in snapshots] or [
            side_of(kind, at, spec) for spec in guest.disks
        ]
        plan = ExportPlan(
            node=node.ref,
            target=target.ref if target else None,
            guest=guest,
            detach=kind.after_stop(at, was_running=was_running),
            attach=kind.before_start(at),
            was_running=was_running,
            copies=(),
            description="",
            replaces=False,
            removal=await self._removal().prepare(cluster, None) if self.remove_instance else None,
            wait_s=float(self.shutdown_timeout),
            stops=self.shutdown or not was_running,
            snapshots=snapshots,
            kept=kept,
        )
        if target is None:
            sent = away.disks(
                trust_of(cluster.state),
                places,
                sources,
                compression=self.compress,
                rate=self.rate_limit,
            )
            return replace(plan, sent=sent)
        nics = config.nics_of(instance)
        return replace(
            plan,
            copies=self._copies(cluster, instance, guest, sources, target.ref),
            description=describe(
                config, instance, disks, nics, source=node.name, now=cluster.now()
            ),
            replaces=instance.name in await cluster.call(Exports, target).exports(),
        )

    def promises(self, plan: ExportPlan) -> Iterable[Promise]:
        return [promise_of_space(plan.kept)] if plan.kept else ()

    def recipe(self, cluster: Cluster, plan: ExportPlan) -> Iterator[Step]:
        name = plan.guest.name
        if plan.stops:
            yield shut_down_guest(
                cluster,
                plan.guest,
                plan.node,
                plan.detach,
                wait_s=plan.wait_s,
                was_running=plan.was_running,
            )
        restart = start_guest(cluster, plan.guest, plan.node, plan.attach, was_running=True)
        if plan.snapshots:
            yield take_snapshots(cluster, f"snapshots of {name}", plan.node, plan.snapshots)
            if plan.stops:
                yield restart
        if plan.target is None:
            yield from send_disks(cluster, name, plan.sent)
        else:
            yield from copy_all(cluster, plan.copies)
            yield _finish(cluster, plan, plan.target)
        for index, each in enumerate(plan.snapshots):
            yield delete_snapshot(cluster, index, "export", each.kept, plan.node)
        if plan.removal:
            yield from take_away(cluster, plan.removal)
        elif plan.was_running and plan.stops and not plan.snapshots:
            yield restart

    def result(self, plan: ExportPlan) -> list[bool | list[bool]]:
        return [True, [True for _ in plan.guest.disks]]

    def _copies(
        self,
        cluster: Cluster,
        instance: Instance,
        guest: GuestSpec,
        sources: Sequence[Side],
        target: NodeRef,
    ) -> tuple[DiskCopy, ...]:
        return tuple(
            DiskCopy(
                index=index,
                source=source,
                target=_dump(cluster, instance, spec, target),
                compression=self.compress,
                rate=self.rate_limit,
            )
            for index, (source, spec) in enumerate(zip(sources, guest.disks, strict=True))
        )

    def _removal(self) -> RemoveInstance:
        return RemoveInstance(
            instance_name=self.instance_name, ignore_failures=self.ignore_remove_failures
        )


def _finish(cluster: Cluster, plan: ExportPlan, target: NodeRef) -> Step:
    name, exports = plan.guest.name, cluster.call(Exports, target)
    return Step(
        f"put the export of {name} in its place on {target}",
        do=lambda: exports.finish(export=name, config=plan.description),
        undo=None if plan.replaces else lambda: exports.ensure_absent(export=name),
        point_of_no_return=True,
    )


def _dump(cluster: Cluster, instance: Instance, disk: DiskSpec, node: NodeRef) -> Side:
    backing = DumpBacking(export=instance.name, name=disk.id)
    spec = DiskSpec(
        id=DiskId(cluster.new_uuid()), instance=instance.uuid, size=disk.size, backing=backing
    )
    attach, detach = Handover(do=sole(node)), Handover(do=none(node))
    return Side(node=node, disk=spec, attach=attach, detach=detach, may_be_left=True)
