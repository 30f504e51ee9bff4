"""Disconnect a group from a network."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.model.group import Group
from common.model.network import Network
from common.names import InstanceName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NetworkArgument
from coordinator.operations.locking import wanted
from coordinator.operations.network.connect import ConnectionPlan, reconnect
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


@operation("OP_NETWORK_DISCONNECT")
class DisconnectNetwork(Operation[None, ConnectionPlan], kw_only=True):
    """Take a network away from a group none of whose instances is in it."""

    network_name: NetworkArgument
    group_name: Annotated[str, argument("name of the group")]

    def locks(self, config: Config, _: None) -> Wanted:
        network = config.get(NETWORK, self.network_name)
        group = config.group(self.group_name)
        return wanted(networks_exclusive=[network.uuid], groups_exclusive=[group.uuid])

    async def prepare(self, cluster: Cluster, _: None) -> ConnectionPlan:
        config = cluster.config
        network = config.get(NETWORK, self.network_name)
        before = config.group(self.group_name)
        if network.uuid not in before.networks:
            cluster.log(f"Group {before.name} is not connected to {network.name}.")
        elif users := _users(config, network, before):
            raise Conflict(
                f"Instances of {before.name} have nics in {network.name}: {', '.join(users)}.",
                network=network.name,
                group=before.name,
            )
        left = {uuid: each for uuid, each in before.networks.items() if uuid != network.uuid}
        return ConnectionPlan(
            network=network.name,
            before=before,
            after=replace(before, networks=left),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: ConnectionPlan) -> Iterator[Step]:  # noqa: ARG002
        yield from reconnect(f"disconnect the group {plan.before.name} from {plan.network}", plan)


def _users(config: Config, network: Network, group: Group) -> list[InstanceName]:
    """Return the instances of a group that have nics in a network."""
    return [
        instance.name
        for instance in config.sorted_instances()
        if config.nodes[instance.primary_node].group == group.uuid
        and any(nic.network == network.uuid for nic in config.nics_of(instance))
    ]
