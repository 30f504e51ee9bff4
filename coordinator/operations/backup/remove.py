"""Delete an instance's exports."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from common.errors import GntError, NotFound
from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceName
from common.noderpc.exports import Exports
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, act
from coordinator.state.config import Config


class RemoveExportPlan(Order, kw_only=True):
    export: str
    nodes: tuple[NodeRef, ...]


@operation("OP_BACKUP_REMOVE")
class RemoveExport(Operation[None, RemoveExportPlan], kw_only=True):
    """Delete the exports of an instance, which need not exist any more, from all nodes."""

    takes_reservations: ClassVar[bool] = True  # it is about what another one of the name has left

    instance_name: Annotated[InstanceName, argument("name of the export")]

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(instance=self.instance_name, nodes=config.nodes)

    async def prepare(self, cluster: Cluster, _: None) -> RemoveExportPlan:
        online = [node for node in cluster.config.sorted_nodes() if not node.offline]
        answers = await cluster.each(
            {node.uuid: cluster.call(Exports, node).exports() for node in online}
        )
        found = []
        for node in online:
            exports = answers[node.uuid]
            if isinstance(exports, GntError):
                cluster.log(f"{node.name} does not tell which exports it has: {exports}")
            elif self.instance_name in exports:
                found.append(node.ref)
        if not found:
            raise NotFound(f"No node has an export {self.instance_name}.")
        return RemoveExportPlan(export=self.instance_name, nodes=tuple(found))

    def recipe(self, cluster: Cluster, plan: RemoveExportPlan) -> Iterator[Step]:
        yield Step(f"give up the export {plan.export}", point_of_no_return=True)
        for node in plan.nodes:
            yield _delete(cluster, plan.export, node)


def _delete(cluster: Cluster, export: str, node: NodeRef) -> Step:
    return act(
        f"delete the export {export} on {node}",
        lambda: cluster.call(Exports, node).ensure_absent(export=export),
    )
