"""Give a network another name."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.network import Network
from common.names import NetworkName, check_name
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NetworkArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class RenameNetworkPlan(Order):
    before: Network
    after: Network
    now: float


@operation("OP_NETWORK_RENAME")
class RenameNetwork(Operation[None, RenameNetworkPlan], kw_only=True):
    """Give a network another name."""

    network_name: NetworkArgument
    new_name: Annotated[NetworkName, argument("its name from then on")]

    def locks(self, config: Config, _: None) -> Wanted:
        uuid = config.get(NETWORK, self.network_name).uuid
        return wanted(networks_exclusive=[uuid, self.new_name])

    async def prepare(self, cluster: Cluster, _: None) -> RenameNetworkPlan:
        check_name(self.new_name, "network")
        before = cluster.config.get(NETWORK, self.network_name)
        if cluster.config.find(NETWORK, self.new_name):
            raise Conflict(f"There is a network {self.new_name} already.", network=self.new_name)
        after = replace(before, name=self.new_name)
        return RenameNetworkPlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RenameNetworkPlan) -> Iterator[Step]:  # noqa: ARG002
        title = f"rename the network {plan.before.name} to {plan.after.name}"
        yield change(title, (plan.before,), (plan.after,), plan.now)

    def result(self, plan: RenameNetworkPlan) -> str:
        return plan.after.name
