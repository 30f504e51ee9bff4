"""Remove a network that nothing uses."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.network import Network
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NetworkArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class RemoveNetworkPlan(Order):
    network: Network
    now: float


@operation("OP_NETWORK_REMOVE")
class RemoveNetwork(Operation[None, RemoveNetworkPlan], kw_only=True):
    """Remove a network that no group is connected to any more."""

    network_name: NetworkArgument
    force: Annotated[bool, hidden("Ganeti's; it asks for nothing more")] = False

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(networks_exclusive=[config.get(NETWORK, self.network_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> RemoveNetworkPlan:
        config = cluster.config
        network = config.get(NETWORK, self.network_name)
        if groups := [g.name for g in config.sorted_groups() if network.uuid in g.networks]:
            raise Conflict(
                f"Network {network.name} is connected to {', '.join(groups)}; disconnect it with "
                f"“gnt-network disconnect {network.name} {' '.join(groups)}” first.",
                network=network.name,
            )
        return RemoveNetworkPlan(network=network, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RemoveNetworkPlan) -> Iterator[Step]:  # noqa: ARG002
        yield change(f"remove the network {plan.network.name}", (plan.network,), (), plan.now)
