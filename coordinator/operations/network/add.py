"""Make a network."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.network import Network
from common.model.tags import check_tags
from common.names import NetworkId, NetworkName, check_name
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    GatewaySixOption,
    MacPrefixOption,
    NetworkSixOption,
    TagsOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.network.words import check_network, in_order, machines_in
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class AddNetworkPlan(Order):
    network: Network
    now: float


@operation("OP_NETWORK_ADD")
class AddNetwork(Operation[None, AddNetworkPlan], kw_only=True):
    """Make a network, from whose addresses nics are given some; no group is connected to it yet."""

    network_name: Annotated[NetworkName, argument("name of the new network")]
    network: Annotated[str | None, option("--network", help="its IPv4 addresses: 192.0.2.0/24")] = (
        None
    )
    gateway: Annotated[str | None, option("--gateway", help="its IPv4 router")] = None
    network6: NetworkSixOption = None
    gateway6: GatewaySixOption = None
    mac_prefix: MacPrefixOption = None
    add_reserved_ips: Annotated[
        tuple[str, ...],
        option(
            "--add-reserved-ips",
            help="addresses that no nic is given, with commas",
            syntax=Syntax.LIST,
        ),
    ] = ()
    conflicts_check: Annotated[
        bool,
        option(
            "--no-conflicts-check",
            help="do not reserve the addresses of nodes",
            syntax=Syntax.NO_FLAG,
        ),
    ] = True
    tags: TagsOption = ()

    @classmethod
    def understood(cls, given: dict[str, object]) -> dict[str, object]:
        reserved = given.get("add_reserved_ips", ())
        return given | {"add_reserved_ips": () if reserved is None else reserved}

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it is not there yet
        return wanted(networks_exclusive=[self.network_name])

    async def prepare(self, cluster: Cluster, _: None) -> AddNetworkPlan:
        config, now = cluster.config, cluster.now()
        check_name(self.network_name, "network")
        check_tags(self.tags)
        if config.find(NETWORK, self.network_name):
            raise Conflict(
                f"There is a network {self.network_name} already.", network=self.network_name
            )
        network = Network(
            uuid=NetworkId(cluster.new_uuid()),
            ctime=now,
            mtime=now,
            name=self.network_name,
            network=self.network or "",
            gateway=self.gateway or "",
            network6=self.network6 or "",
            gateway6=self.gateway6 or "",
            mac_prefix=(self.mac_prefix or "").lower(),
            reserved=in_order(self.add_reserved_ips),
            tags=tuple(sorted(set(self.tags))),
        )
        check_network(network)
        if self.conflicts_check and (machines := machines_in(config, network)):
            cluster.log(f"Addresses of nodes are reserved: {', '.join(machines)}.")
            network = replace(network, reserved=in_order((*network.reserved, *machines)))
        return AddNetworkPlan(network=network, now=now)

    def recipe(self, cluster: Cluster, plan: AddNetworkPlan) -> Iterator[Step]:  # noqa: ARG002
        yield change(f"make the network {plan.network.name}", (), (plan.network,), plan.now)

    def result(self, plan: AddNetworkPlan) -> str:
        return plan.network.uuid
