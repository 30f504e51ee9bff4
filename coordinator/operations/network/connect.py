"""Connect a group to a network."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.address_pool import AddressPool
from common.model.group import Group
from common.model.network import Connection, Network
from common.model.parameters import NicMode, NicParameters, filled, settled
from common.names import NetworkName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import ConflictsCheck, NetworkArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class ConnectionPlan(Order):
    """A group before and after it is connected, or disconnected."""

    network: NetworkName
    before: Group
    after: Group
    now: float


@operation("OP_NETWORK_CONNECT")
class ConnectNetwork(Operation[None, ConnectionPlan], kw_only=True):
    """Say how the nodes of a group plug nics of a network in."""

    network_name: NetworkArgument
    group_name: Annotated[str, argument("name of the group")]
    network_mode: Annotated[
        NicMode | None,
        option("--mode", help="bridged, routed or openvswitch (as nics are by default)"),
    ] = None
    network_link: Annotated[
        str | None, option("--link", help="bridge or routing table (as nics have by default)")
    ] = None
    network_vlan: Annotated[str, option("--vlan", help="VLAN on the link")] = ""
    nicparams: Annotated[
        dict[str, Any],
        option("-N", "--nic-parameters", help="all three at once: mode=MODE,link=LINK,vlan=VLAN",
               syntax=Syntax.KEYVAL),
    ] = {}  # fmt: skip
    conflicts_check: ConflictsCheck = True

    def locks(self, config: Config, _: None) -> Wanted:
        network = config.get(NETWORK, self.network_name)
        group = config.group(self.group_name)
        return wanted(networks_exclusive=[network.uuid], groups_exclusive=[group.uuid])

    async def prepare(self, cluster: Cluster, _: None) -> ConnectionPlan:
        config = cluster.config
        network = config.get(NETWORK, self.network_name)
        before = config.group(self.group_name)
        connection = self._connection(config, network)
        present = before.networks.get(network.uuid)
        if present is not None:
            cluster.log(_stays(before.name, network.name, present, connection))
            connection = present
        elif self.conflicts_check:
            _check_addresses(config, network, before)
        after = replace(before, networks={**before.networks, network.uuid: connection})
        return ConnectionPlan(network=network.name, before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: ConnectionPlan) -> Iterator[Step]:  # noqa: ARG002
        yield from reconnect(f"connect the group {plan.before.name} to {plan.network}", plan)

    def _connection(self, config: Config, network: Network) -> Connection:
        given: dict[str, Any] = {
            "mode": self.network_mode,
            "link": self.network_link,
            "vlan": self.network_vlan,
        }
        base = settled(NicParameters, config.cluster.nicparams)
        told = {key: value for key, value in given.items() if value}
        if twice := sorted(told.keys() & self.nicparams.keys()):
            raise InvalidRequest(f"Say only once how nics are plugged in: {', '.join(twice)}.")
        if others := sorted(self.nicparams.keys() - given.keys()):
            raise InvalidRequest(
                f"A connection has no {', '.join(others)}; it has mode, link and vlan."
            )
        told |= self.nicparams
        what = f"how nics of {network.name} are plugged in"
        full = filled(NicParameters, {"mode": base.mode, "link": base.link}, told, what=what)
        return {"mode": full.mode, "link": full.link, "vlan": full.vlan}


def reconnect(title: str, plan: ConnectionPlan) -> Iterator[Step]:
    """Change how a group is connected, where it is not so already."""
    if plan.after != plan.before:
        yield change(title, (plan.before,), (plan.after,), plan.now)


def _stays(group: str, network: str, present: Connection, wanted: Connection) -> str:
    """Say that a group is connected already; as by Ganeti that is no error, whatever the way."""
    if present == wanted:
        return f"Group {group} is connected to {network} already."
    way = ", ".join(f"{name} {value}" for name, value in sorted(present.items()) if value)
    return (
        f"Group {group} is connected to {network} already, in another way ({way}), and "
        f"stays so. To have it otherwise, give “gnt-network disconnect {network} {group}” first."
    )


def _check_addresses(config: Config, network: Network, group: Group) -> None:
    """Refuse a network some of whose addresses nics of the group have that are not in it."""
    pool, taken = AddressPool(network), []
    for instance in config.sorted_instances():
        if config.nodes[instance.primary_node].group != group.uuid:
            continue
        nics = config.nics_of(instance)
        taken += [f"{nic.ip} of {instance.name}" for nic in nics
                  if nic.ip and not nic.network and pool.is_inside(nic.ip)]  # fmt: skip
    if taken:
        raise Conflict(
            f"Nics of {group.name} that are in no network have addresses of {network.name}: "
            f"{', '.join(taken)}. Put them into {network.name}, or give --no-conflicts-check.",
            network=network.name,
        )
