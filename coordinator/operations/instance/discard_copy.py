"""Give up what was written to one copy of disks whose two copies were written to apart."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.node import NodeRef
from common.names import NodeName
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.mirrors import in_words, is_split, mirrored
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import check_online
from coordinator.operations.steps.edits import note_copies
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.syncing import wait_for_sync
from coordinator.state.config import Config


class DiscardPlan(Order, kw_only=True):
    """``guest`` has those disks that are written to apart."""

    guest: GuestSpec
    victim: NodeRef
    keeper: NodeRef
    now: float


@operation("OP_INSTANCE_DISCARD_COPY")
class DiscardCopy(Operation[None, DiscardPlan], kw_only=True):
    """Give up one side of mirrored disks that were written to apart; the other side is kept."""

    instance_name: InstanceArgument
    node_name: Annotated[
        NodeName, option("-n", "--node", metavar="NODE", help="whose writes are given up")
    ]

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> DiscardPlan:
        config = cluster.config
        instance, victim = config.instance(self.instance_name), config.node(self.node_name)
        homes = [config.nodes[uuid] for uuid in config.nodes_of(instance)]
        if not instance.disk_template.traits.is_mirrored or victim not in homes:
            raise InvalidRequest(f"{victim.name} has no copy of {instance.name} beside another.")
        check_settled(cluster, instance)
        (keeper,) = (node for node in homes if node != victim)
        check_online(victim)
        check_online(keeper)
        guest = present_guest(config, instance)
        disks = mirrored(guest)
        lost = await cluster.call(Mirrors, victim).status(disks=disks)
        kept = await cluster.call(Mirrors, keeper).status(disks=disks)
        split = []
        for index, (disk, one, other) in enumerate(zip(disks, lost, kept, strict=True)):
            if not is_split((one, other)):
                continue
            if one is None or other is None:
                side = victim if one is None else keeper
                raise Conflict(f"Disk {index} {in_words(None)}, on {side.name}: attach it first.")
            if one.primary:
                raise Conflict(
                    f"{instance.name} uses disk {index} on {victim.name}. Give up the other side, "
                    f"or stop it with “gnt-instance shutdown {instance.name}” first.",
                    instance=instance.name,
                )
            split.append(disk)
        if not split:
            raise Conflict(
                f"The copies of {instance.name} were not written to apart, so nothing has to be "
                "given up.",
                instance=instance.name,
            )
        return DiscardPlan(
            guest=replace(guest, disks=tuple(split)),
            victim=victim.ref,
            keeper=keeper.ref,
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: DiscardPlan) -> Iterator[Step]:
        yield from fall_behind(plan.guest, (plan.victim,), plan.now)

        async def meet() -> None:
            disks = plan.guest.disks
            await cluster.call(Mirrors, plan.victim).connect(disks=disks, discard=True)
            await cluster.call(Mirrors, plan.keeper).connect(disks=disks, discard=False)
            await wait_for_sync(cluster, plan.guest, plan.keeper)

        name = plan.guest.name
        yield act(f"give up what {plan.victim} has of {name} beyond {plan.keeper}", meet)
        yield record(
            f"note that the disks of {name} are up to date on {plan.victim}",
            note_copies(
                tuple(disk.id for disk in plan.guest.disks),
                plan.now,
                good=(plan.victim.uuid, plan.keeper.uuid),
            ),
            point_of_no_return=True,
        )
