"""Tell how to reach an instance's console."""

from common.errors import Conflict
from common.messages import Order, to_builtins
from common.names import InstanceId, InstanceName, KeyId, NodeName
from common.noderpc.instances import Instances
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.locking import wanted
from coordinator.operations.steps.checks import check_online, find_guest, is_alive
from coordinator.operations.steps.shown_key import shown_key
from coordinator.state.config import Config


class ConsolePlan(Order, kw_only=True):
    """Keys are those of Ganeti's console objects; ``kind`` stream is ours."""

    instance: InstanceName
    uuid: InstanceId
    kind: str
    message: str = ""
    host: str
    port: int
    node: NodeName
    key: KeyId  # of the node: whoever shows another one is an impostor


@operation("OP_INSTANCE_CONSOLE")
class FindConsole(Operation[None, ConsolePlan], kw_only=True):
    """Tell how to reach the console of a running instance."""

    instance_name: InstanceArgument

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- a look needs none
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> ConsolePlan:
        instance = cluster.config.instance(self.instance_name)
        node = cluster.config.nodes[instance.primary_node]
        check_online(node)
        if not is_alive(await find_guest(cluster, instance, node)):
            raise Conflict(f"Instance {instance.name} is not running.", instance=instance.name)
        told = await cluster.call(Instances, node).console(instance=instance.uuid)
        return ConsolePlan(
            instance=instance.name,
            uuid=instance.uuid,
            **to_builtins(told),
            host=node.primary_ip,
            port=node.port,
            node=node.name,
            key=await shown_key(cluster, node),
        )

    def result(self, plan: ConsolePlan) -> ConsolePlan:
        return plan
