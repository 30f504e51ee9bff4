"""Change a network."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order, to_builtins
from common.model.network import Network
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    GatewaySixOption,
    MacPrefixOption,
    NetworkArgument,
    NetworkSixOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.network.words import check_free, check_kept, check_network, in_order
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change, differing
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK

NONE = "none"  # takes a value away


class ModifyNetworkPlan(Order):
    before: Network
    after: Network
    now: float


@operation("OP_NETWORK_SET_PARAMS")
class ModifyNetwork(Operation[None, ModifyNetworkPlan], kw_only=True):
    """Change routers, MAC prefix, IPv6 or reserved addresses of a network. Its IPv4 range stays."""

    network_name: NetworkArgument
    gateway: Annotated[str | None, option("--gateway", help="its IPv4 router, or none")] = None
    network6: NetworkSixOption = None
    gateway6: GatewaySixOption = None
    mac_prefix: MacPrefixOption = None
    add_reserved_ips: Annotated[
        tuple[str, ...] | None,
        option("--add-reserved-ips", help="reserve these, with commas", syntax=Syntax.LIST),
    ] = None
    remove_reserved_ips: Annotated[
        tuple[str, ...] | None,
        option("--remove-reserved-ips", help="reserve these no longer", syntax=Syntax.LIST),
    ] = None

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(networks_exclusive=[config.get(NETWORK, self.network_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> ModifyNetworkPlan:
        config = cluster.config
        before = config.get(NETWORK, self.network_name)
        names = ("gateway", "network6", "gateway6", "mac_prefix")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        told = {name: "" if value == NONE else value.lower() for name, value in given.items()}
        come, gone = in_order(self.add_reserved_ips or ()), in_order(self.remove_reserved_ips or ())
        if stray := set(gone) - set(before.reserved):
            raise InvalidRequest(f"{', '.join(in_order(stray))}: not reserved in {before.name}.")
        kept = (address for address in before.reserved if address not in gone)
        after = replace(before, **told, reserved=in_order((*kept, *come)))
        check_network(after)
        check_kept(config, before, after)
        routers = filter(None, (told.get("gateway"), told.get("gateway6")))
        check_free(config, before, (*come, *routers))
        if not differing(before, after):
            raise InvalidRequest(f"Nothing to change on network {before.name}.")
        return ModifyNetworkPlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: ModifyNetworkPlan) -> Iterator[Step]:  # noqa: ARG002
        title = f"record the change of the network {plan.before.name}"
        yield change(title, (plan.before,), (plan.after,), plan.now)

    def result(self, plan: ModifyNetworkPlan) -> list[list[Any]]:
        changes: dict[str, Any] = to_builtins(differing(plan.before, plan.after))
        return [[name, str(value)] for name, value in changes.items()]
