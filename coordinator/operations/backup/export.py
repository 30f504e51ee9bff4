"""Keep what is needed to make an instance anew on a node, or send it to another cluster."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.copies import Compression
from common.noderpc.exports import Exports
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.backup.by_script import full_order
from coordinator.operations.backup.export_plan import ExportPlan
from coordinator.operations.backup.prepare import REMOTE, check_mode
from coordinator.operations.backup.sending import Away, find_sender
from coordinator.operations.backup.still import source_of, still_disks
from coordinator.operations.backup.to_node import Way, planned_to_node
from coordinator.operations.backup.trust import Destination, Place, trust_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    FreezeOption,
    InstanceArgument,
    RateOption,
    RoomOption,
    ShutdownTimeout,
)
from coordinator.operations.instance.kept import with_snapshots
from coordinator.operations.instance.remove import RemoveInstance, as_down, take_away
from coordinator.operations.instance.second_copy import find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.growth import promise_of_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.between_clusters import check_new_enough
from coordinator.operations.steps.carriers import Scripts, WholeDisks
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.copies import Side, copy_all, make_target, side_of
from coordinator.operations.steps.guests import start_again, stop_guest
from coordinator.operations.steps.patience import in_passing
from coordinator.operations.steps.script_copies import copy_by_script
from coordinator.operations.steps.scripts import complete
from coordinator.operations.steps.sent_disks import send_disks
from coordinator.operations.steps.snapshots import delete_snapshot, take_snapshots
from coordinator.state.config import Config


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
    freeze: FreezeOption = False
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
    whole_disks: Annotated[
        bool,
        option(
            "--whole-disks",
            help="copy them as they are, also if its operating system has a script for exports",
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
        places: tuple[Destination, ...] = ()
        if target is None:
            places = self._away.check(trust_of(cluster.state), instance, node)
            await check_new_enough(cluster, node.ref)
        check_settled(cluster, instance)
        was_running = may_run(await find_guest(cluster, instance, node))
        self._check_wishes()
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
            now=cluster.now(),
        )
        if target is None:
            return await self._planned_away(cluster, plan, instance, places, sources)
        way = Way(whole_disks=self.whole_disks, compression=self.compress, rate=self.rate_limit)
        return await planned_to_node(cluster, plan, instance, sources, target.ref, way)

    @property
    def _away(self) -> Away:
        return Away(
            places=self.places, key_name=self.x509_key_name, certificate=self.destination_x509_ca
        )

    def _check_wishes(self) -> None:
        if self.freeze and self.shutdown:
            raise InvalidRequest("What is stopped needs no --freeze: give --noshutdown with it.")
        if self.remove_instance and not self.shutdown:
            raise InvalidRequest("An instance that is removed has to be shut down before.")

    async def _planned_away(
        self,
        cluster: Cluster,
        plan: ExportPlan,
        instance: Instance,
        places: Sequence[Destination],
        sources: Sequence[Side],
    ) -> ExportPlan:
        """Return the plan with what is sent to another cluster, and by whom."""
        compression, rate = self.compress, self.rate_limit
        trust = trust_of(cluster.state)
        sent = self._away.disks(trust, places, sources, compression=compression, rate=rate)
        whole = self.whole_disks
        by = await find_sender(cluster, instance, plan.guest, places, sources, whole_disks=whole)
        return replace(plan, sent=sent, sent_by=by, osparams=dict(instance.osparams))

    def promises(self, plan: ExportPlan) -> Iterable[Promise]:
        return [promise_of_space(plan.kept)] if plan.kept else ()

    def recipe(self, cluster: Cluster, plan: ExportPlan) -> Iterator[Step]:
        name = plan.guest.name
        if plan.stops:
            yield from stop_guest(
                cluster,
                plan.guest,
                plan.node,
                plan.detach,
                plan.now,
                wait_s=plan.wait_s,
                was_running=plan.was_running,
            )
        restart = start_again(cluster, plan.guest, plan.node, plan.attach, plan.now)
        if plan.snapshots:
            what = f"snapshots of {name}"
            yield take_snapshots(cluster, what, plan.node, plan.snapshots, freeze=self.freeze)
            if plan.stops:
                yield from restart
        if plan.target is None:
            let_go = as_down(plan.removal) if plan.removal else None
            yield from send_disks(cluster, name, plan.sent, _carrier(cluster, plan), let_go)
        else:
            yield from copy_all(cluster, plan.copies)
            for each in plan.scripted:
                yield make_target(cluster, each.index, each.dump)
            for each in plan.scripted:
                yield from copy_by_script(cluster, each, partial(full_order, cluster))
            yield _finish(cluster, plan, plan.target)
        for index, snapshot in enumerate(plan.snapshots):
            yield delete_snapshot(cluster, index, "export", snapshot.kept, plan.node)
        if plan.removal:
            yield from take_away(cluster, plan.removal)
        elif plan.was_running and plan.stops and not plan.snapshots:
            yield from restart

    def result(self, plan: ExportPlan) -> list[bool | list[bool]]:
        return [True, [True for _ in plan.guest.disks]]

    def _removal(self) -> RemoveInstance:
        return RemoveInstance(
            instance_name=self.instance_name, ignore_failures=self.ignore_remove_failures
        )


def _carrier(cluster: Cluster, plan: ExportPlan) -> WholeDisks:
    """Return what brings its disks to another cluster."""
    if plan.sent_by is None:
        return WholeDisks()
    return Scripts(cluster, plan.sent_by, lambda order: complete(cluster, order, plan.osparams))


def _finish(cluster: Cluster, plan: ExportPlan, target: NodeRef) -> Step:
    name, exports = plan.guest.name, cluster.call(Exports, target)

    async def undo() -> None:
        absent = partial(exports.ensure_absent, export=name)
        await in_passing(cluster, target, absent, left=f"The export of {name}")

    return Step(
        f"put the export of {name} in its place on {target}",
        do=lambda: exports.finish(export=name, config=plan.description),
        undo=None if plan.replaces else undo,
        point_of_no_return=True,
    )
