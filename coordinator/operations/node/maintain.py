"""Have a node empty for a while, and have everything come back to it.

What has to be waited for holds no locks: each move is a job of its own, and the one that comes
after them looks whether all have left. So other jobs go on, a new master goes on with all of it,
and whatever fails, or is cancelled, ends with everything where it was.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import AdminState, Instance
from common.model.node import Maintenance, Node
from common.noderpc.facts import Facts
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, NodeArgument
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.operations.node.failover import FailOverNode
from coordinator.operations.node.leave import check_can_leave
from coordinator.operations.node.migrate import MigrateNode
from coordinator.operations.node.modify import ModifyNode, ModifyPlan
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config

_ENDED = ("success", "error", "canceled")


class Moved(Order):
    """What the job that drained the node has left to others has ended: it is seen what is next."""


class MaintainPlan(Order, kw_only=True):
    """What changes of the node, what is left to other jobs, and who has not left."""

    modify: ModifyPlan | None = None
    jobs: tuple[tuple[FollowUp, ...], ...] = ()
    stayed: tuple[str, ...] = ()


@operation("OP_NODE_MAINTAIN")
class MaintainNode(Operation[Moved | None, MaintainPlan], kw_only=True):
    """Drain a node and have its instances move away; afterwards, have it all come back.

    If an instance cannot leave, or its job is cancelled, everything comes back at once.
    """

    node_name: NodeArgument
    back: Annotated[
        bool, option("--back", help="the work is done: all comes back", syntax=Syntax.FLAG)
    ] = False
    reboot: Annotated[
        bool,
        option(
            "--reboot",
            help="power-cycle it when it is empty, wait until it is back, and have all come back",
            syntax=Syntax.FLAG,
        ),
    ] = False
    failover: Annotated[
        bool,
        option("--failover", help="stop what runs, and start it elsewhere", syntax=Syntax.FLAG),
    ] = False
    iallocator: AllocatorOption = None

    def is_for_root(self) -> bool:
        return True  # it makes other nodes candidates

    def locks(self, config: Config, moved: Moved | None) -> Wanted:
        if moved:
            return wanted(nodes=[config.node(self.node_name).uuid])
        return wanted(nodes_exclusive=[node.uuid for node in config.sorted_nodes()])  # the pool

    async def choose(self, cluster: Cluster) -> Moved | None:  # noqa: ARG002 -- there is nothing to
        return None  # look at: only the job that has drained the node knows

    async def prepare(self, cluster: Cluster, moved: Moved | None) -> MaintainPlan:
        if self.back and self.reboot:
            raise InvalidRequest("Say --reboot before the work on a node, or --back after it.")
        node = cluster.config.node(self.node_name)
        if moved:
            return self._go_on(cluster, node)
        return await (self._back(cluster, node) if self.back else self._away(cluster, node))

    def recipe(self, cluster: Cluster, plan: MaintainPlan) -> Iterator[Step]:
        if plan.modify is not None:
            yield from ModifyNode(node_name=self.node_name).recipe(cluster, plan.modify)

    def jobs(self, plan: MaintainPlan) -> FollowUps:
        return plan.jobs

    def result(self, plan: MaintainPlan) -> dict[str, Any]:
        return {"jobs": [], "stayed": list(plan.stayed)}

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002
        plan: MaintainPlan,
        titles: list[str],
    ) -> list[str]:
        moves = (op.input.get("instance_name") for job in plan.jobs for op in job)
        return [*titles, *(f"move {name}" for name in moves if name)]

    async def _away(self, cluster: Cluster, node: Node) -> MaintainPlan:
        config = cluster.config
        if node.uuid == config.cluster.master:
            raise Conflict(
                f"Node {node.name} is the master; move the mastership first, with "
                "“gnt-cluster master-failover” on another candidate.",
                node=node.name,
            )
        if node.maintenance is not None or node.drained:
            raise Conflict(
                f"Node {node.name} is drained already; “gnt-node maintain --back {node.name}” "
                "brings it back.",
                node=node.name,
            )
        check_online(node)
        instances = config.instances_on(node.uuid)
        check_can_leave(instances)
        drain = ModifyNode(node_name=node.name, drained=True, auto_promote=True)
        modify = _with(
            await drain.prepare(cluster, None),
            Maintenance(
                moved=tuple(instance.uuid for instance in instances),
                was_candidate=node.master_candidate,
            ),
        )
        mirrored = config.instances_with_secondary(node.uuid)
        if lone := [i.name for i in mirrored if not i.forthcoming]:
            cluster.log(f"There is one copy only of {', '.join(lone)} while {node.name} is down.")
        moves = tuple((FollowUp(input=self._move(instance)),) for instance in instances)
        look = MaintainNode(node_name=node.name, reboot=self.reboot).to_input()
        depends = [[-number, list(_ENDED)] for number in range(1, len(moves) + 1)]
        then = FollowUp(input=look | {"depends": depends}, choice=Moved())
        return MaintainPlan(modify=modify, jobs=(*moves, (then,)))

    def _move(self, instance: Instance) -> dict[str, Any]:
        kind = FailOverNode if self.failover else MigrateNode
        return kind(node_name=self.node_name, iallocator=self.iallocator).order(instance)

    def _go_on(self, cluster: Cluster, node: Node) -> MaintainPlan:
        if node.maintenance is None:
            cluster.log(f"Somebody has brought {node.name} back meanwhile; nothing is left to do.")
            return MaintainPlan()
        back = FollowUp(input=MaintainNode(node_name=node.name, back=True).to_input())
        if stayed := tuple(i.name for i in cluster.config.instances_on(node.uuid)):
            cluster.log(f"{', '.join(stayed)} did not leave {node.name}, so everything comes back.")
            return MaintainPlan(jobs=((back,),), stayed=stayed)
        if not self.reboot:
            cluster.log(
                f"Node {node.name} is empty. When the work on it is done, “gnt-node maintain "
                f"--back {node.name}” brings everything back."
            )
            return MaintainPlan()
        cycle = {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": node.name, "wait": True}
        return MaintainPlan(jobs=((FollowUp(input=cycle), back),))

    async def _back(self, cluster: Cluster, node: Node) -> MaintainPlan:
        config, kept = cluster.config, node.maintenance
        if kept is None:
            raise Conflict(
                f"Node {node.name} is under no maintenance; “gnt-node modify --drained=no "
                f"{node.name}” has a drained one take instances again.",
                node=node.name,
            )
        await cluster.call(Facts, node).facts()  # it is there again
        has_room = len(config.candidates()) < config.cluster.candidate_pool_size
        is_candidate = kept.was_candidate and has_room and node.master_capable
        if kept.was_candidate and not is_candidate:
            cluster.log(f"There are candidates enough; {node.name} comes back as a regular node.")
        undrain = ModifyNode(
            node_name=node.name, drained=False, master_candidate=True if is_candidate else None
        )
        modify = _with(await undrain.prepare(cluster, None), None)
        left = [config.instances[uuid] for uuid in kept.moved if uuid in config.instances]
        away = [instance for instance in left if instance.primary_node != node.uuid]
        orders = (self._return(cluster, each, node) for each in away)
        return MaintainPlan(modify=modify, jobs=tuple(order for order in orders if order))

    def _return(self, cluster: Cluster, instance: Instance, node: Node) -> tuple[FollowUp, ...]:
        """Return the operations that move an instance back; none if that is nothing for us."""
        order = self._move(instance)
        if not instance.disk_template.traits.is_mirrored:
            return (FollowUp(input=order | {"target_node": node.name, "iallocator": None}),)
        if node.uuid not in cluster.config.secondary_nodes(instance):
            cluster.log(f"{instance.name} stays: it has no copy of its disks on {node.name} now.")
            return ()
        if instance.admin_state is not AdminState.UP:
            return (FollowUp(input=order),)
        # The node was away: its copy gets what was written meanwhile before it counts again.
        equal = {
            "OP_ID": "OP_INSTANCE_ACTIVATE_DISKS",
            "instance_name": instance.name,
            "wait_for_sync": True,
        }
        return FollowUp(input=equal), FollowUp(input=order)


def _with(plan: ModifyPlan, maintenance: Maintenance | None) -> ModifyPlan:
    """Return the plan with the node itself, which is the first, under maintenance or not."""
    first, *others = plan.after
    return replace(plan, after=(replace(first, maintenance=maintenance), *others))
