"""Keep what is needed to make an instance anew, on a node."""

from collections.abc import Iterator
from typing import Annotated

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
from coordinator.disks.holding import Handover, none, sole
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.backup.description import describe
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument, RateOption, ShutdownTimeout
from coordinator.operations.instance.remove import RemoveInstance, RemovePlan, take_away
from coordinator.operations.instance.second_copy import find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.copies import DiskCopy, Side, copy_disk, make_target, side_of
from coordinator.operations.steps.guests import shut_down_guest, start_guest
from coordinator.state.config import Config


class ExportPlan(Order, kw_only=True):
    node: NodeRef  # where the instance is
    target: NodeRef  # where the export goes
    guest: GuestSpec
    detach: Handover
    attach: Handover
    was_running: bool
    copies: tuple[DiskCopy, ...]
    description: str
    replaces: bool  # an export of before, which is gone when this one is there
    removal: RemovePlan | None
    wait_s: float


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
        bool, option("--noshutdown", help="while it runs; refused", syntax=Syntax.NO_FLAG)
    ] = True
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
    mode: Annotated[str, hidden("only “local”: to a node of this cluster")] = "local"

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes = [*config.nodes_of(instance), config.node(self.target_node).uuid]
        return wanted(instance=instance.name, nodes=nodes)

    async def prepare(self, cluster: Cluster, _: None) -> ExportPlan:
        config = cluster.config
        instance, target = config.instance(self.instance_name), config.node(self.target_node)
        node, kind = config.nodes[instance.primary_node], kind_of(instance.disk_template)
        if self.mode != "local":
            raise InvalidRequest("Instances are exported to nodes of this cluster only.")
        for each in (node, target):
            check_online(each)
        check_settled(cluster, instance)
        was_running = may_run(await find_guest(cluster, instance, node))
        self._check_is_still(instance, was_running=was_running)
        if not was_running:
            await check_not_elsewhere(cluster, instance, node)
        guest = present_guest(config, instance)
        at = (await find_cast(cluster, instance, node, guest)).nodes
        disks = config.disks_of(instance)
        copies = tuple(
            DiskCopy(
                index=index,
                source=side_of(kind, at, spec),
                target=_dump(cluster, instance, spec, target.ref),
                compression=self.compress,
                rate=self.rate_limit,
            )
            for index, spec in enumerate(guest.disks)
        )
        return ExportPlan(
            node=node.ref,
            target=target.ref,
            guest=guest,
            detach=kind.after_stop(at, was_running=was_running),
            attach=kind.before_start(at),
            was_running=was_running,
            copies=copies,
            description=describe(
                config,
                instance,
                disks,
                config.nics_of(instance),
                source=node.name,
                now=cluster.now(),
            ),
            replaces=instance.name in await cluster.call(Exports, target).exports(),
            removal=await self._removal().prepare(cluster, None) if self.remove_instance else None,
            wait_s=float(self.shutdown_timeout),
        )

    def recipe(self, cluster: Cluster, plan: ExportPlan) -> Iterator[Step]:
        name, exports = plan.guest.name, cluster.call(Exports, plan.target)
        yield shut_down_guest(
            cluster,
            plan.guest,
            plan.node,
            plan.detach,
            wait_s=plan.wait_s,
            was_running=plan.was_running,
        )
        for copy in plan.copies:
            yield make_target(cluster, copy)
        for copy in plan.copies:
            yield copy_disk(cluster, copy)
        yield Step(
            f"put the export of {name} in its place on {plan.target}",
            do=lambda: exports.finish(export=name, config=plan.description),
            undo=None if plan.replaces else lambda: exports.ensure_absent(export=name),
            point_of_no_return=True,
        )
        if plan.removal:
            yield from take_away(cluster, plan.removal)
        elif plan.was_running:
            yield start_guest(cluster, plan.guest, plan.node, plan.attach)

    def result(self, plan: ExportPlan) -> list[bool | list[bool]]:
        return [True, [True for _ in plan.copies]]

    def _removal(self) -> RemoveInstance:
        return RemoveInstance(
            instance_name=self.instance_name, ignore_failures=self.ignore_remove_failures
        )

    def _check_is_still(self, instance: Instance, *, was_running: bool) -> None:
        if was_running and not self.shutdown:
            raise InvalidRequest(
                f"Instance {instance.name} runs, and what is on its disks changes while it is "
                "copied: leave --noshutdown out, and it is stopped for that time."
            )
        if self.remove_instance and not self.shutdown:
            raise InvalidRequest("An instance that is removed has to be shut down before.")


def _dump(cluster: Cluster, instance: Instance, disk: DiskSpec, node: NodeRef) -> Side:
    backing = DumpBacking(export=instance.name, name=disk.id)
    spec = DiskSpec(
        id=DiskId(cluster.new_uuid()), instance=instance.uuid, size=disk.size, backing=backing
    )
    attach, detach = Handover(do=sole(node)), Handover(do=none(node))
    return Side(node=node, disk=spec, attach=attach, detach=detach, may_be_left=True)
