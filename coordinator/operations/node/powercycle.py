"""Reboot a node the hard way."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict, GntError, Unreachable
from common.messages import Order
from common.model.node import NodeRef
from common.names import NodeId
from common.noderpc.facts import Facts
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step, act
from coordinator.state.config import Config

LOOK_S = 5.0  # between two looks whether a node is back
TELL_S = 60.0  # between two lines that say so
BOOT_S = 1800.0  # servers test their memory before they boot


class PowercyclePlan(Order):
    node: NodeRef
    boot_id: str  # before; empty if the node cannot tell


@operation("OP_NODE_POWERCYCLE")
class PowercycleNode(Operation[None, PowercyclePlan], kw_only=True):
    """Reboot a node at once, without a word to its guests or disks."""

    node_name: NodeArgument
    force: Annotated[
        bool, option("-f", "--force", help="even if it is the master", syntax=Syntax.FLAG)
    ] = False
    wait: Annotated[
        bool, option("--wait", help="until it answers again, for half an hour", syntax=Syntax.FLAG)
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002
        # None on the node: it may well be that a stuck job holding it is why this is done.
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> PowercyclePlan:
        node = cluster.config.node(self.node_name)
        if node.uuid == cluster.config.cluster.master and not self.force:
            raise Conflict(f"Node {node.name} is the master; add --force if you mean it.")
        boot_id = await _boot_id(cluster, node.uuid)
        return PowercyclePlan(node=node.ref, boot_id=boot_id)

    def recipe(self, cluster: Cluster, plan: PowercyclePlan) -> Iterator[Step]:
        yield Step(
            f"powercycle {plan.node}",
            do=lambda: _powercycle(cluster, plan),
            point_of_no_return=True,
        )
        if self.wait:
            yield act(f"wait until {plan.node} is back", lambda: _wait(cluster, plan))


async def _powercycle(cluster: Cluster, plan: PowercyclePlan) -> None:
    # Once: a coordinator that resumes the job after the reboot of its own node would else
    # reboot it again, and again.
    if plan.boot_id and await _boot_id(cluster, plan.node) not in ("", plan.boot_id):
        return
    await cluster.call(Facts, plan.node).powercycle()


async def _wait(cluster: Cluster, plan: PowercyclePlan) -> None:
    """Return when the node answers from another boot than before.

    Raises:
        Conflict: it was removed from the cluster meanwhile, as waiting holds no locks.
        Unreachable: it has not for half an hour.
    """
    begun = told = cluster.steady()
    while await _boot_id(cluster, plan.node) in ("", plan.boot_id):
        if plan.node.uuid not in cluster.config.nodes:
            raise Conflict(
                f"Node {plan.node} was removed meanwhile, so it is not waited for.",
                node=plan.node.name,
            )
        now = cluster.steady()
        if now - begun > BOOT_S:
            raise Unreachable(
                f"Node {plan.node} has not come back within {BOOT_S / 60:.0f} minutes; look at its "
                "console.",
                node=plan.node.name,
            )
        if now - told >= TELL_S:
            cluster.log(f"{plan.node} has not answered for {now - begun:.0f} s; it is waited for.")
            told = now
        await cluster.sleep(LOOK_S)


async def _boot_id(cluster: Cluster, node: NodeId | NodeRef) -> str:
    """Return what tells this boot of a node from others; nothing if it is too sick to say."""
    try:
        return (await cluster.call(Facts, node).facts()).boot_id
    except GntError:
        return ""
