"""The fields of a network; names, titles, kinds and texts are Ganeti's."""

from functools import cached_property

from common.model.address_pool import AddressPool
from common.model.network import Network
from common.model.nic import Nic
from coordinator.queries.field import Field, Kind, Missing, entity_fields, table
from coordinator.queries.live import Live
from coordinator.state.config import Config


class NetworkRow:
    nodes = ()  # none of which has to be asked for anything

    def __init__(self, network: Network, config: Config, _: Live) -> None:
        self.entity = network
        self.config = config

    @cached_property
    def nics(self) -> tuple[Nic, ...]:
        return tuple(n for n in self.config.nics.values() if n.network == self.entity.uuid)

    @cached_property
    def pool(self) -> AddressPool:
        return AddressPool(self.entity, (nic.ip for nic in self.nics if nic.ip))

    @cached_property
    def groups(self) -> list[list[str]]:
        """The groups that are connected: name, mode, link and VLAN of each."""
        network = self.entity.uuid
        connected = [g for g in self.config.sorted_groups() if network in g.networks]
        return [
            [group.name, *(str(group.networks[network].get(key, "")) for key in _CONNECTION)]
            for group in connected
        ]

    @cached_property
    def instances(self) -> list[str]:
        mine = {nic.uuid for nic in self.nics}
        if not mine:
            return []
        return [i.name for i in self.config.sorted_instances() if not mine.isdisjoint(i.nics)]


_CONNECTION = ("mode", "link", "vlan")


def _given(text: str) -> str | Missing:
    return text or Missing.UNAVAILABLE


# fmt: off
_FIELDS: tuple[Field[NetworkRow], ...] = (
    Field("name", "Network", Kind.TEXT, "Name", lambda row: row.entity.name),
    Field("network", "Subnet", Kind.TEXT, "IPv4 subnet", lambda row: _given(row.entity.network)),
    Field("gateway", "Gateway", Kind.OTHER, "IPv4 gateway", lambda row: _given(row.entity.gateway)),
    Field("network6", "IPv6Subnet", Kind.OTHER, "IPv6 subnet",
          lambda row: _given(row.entity.network6)),
    Field("gateway6", "IPv6Gateway", Kind.OTHER, "IPv6 gateway",
          lambda row: _given(row.entity.gateway6)),
    Field("mac_prefix", "MacPrefix", Kind.OTHER, "MAC address prefix",
          lambda row: _given(row.entity.mac_prefix)),
    Field("free_count", "FreeCount", Kind.NUMBER, "Number of available addresses",
          lambda row: row.pool.size - row.pool.taken_count),
    Field("map", "Map", Kind.TEXT, "Actual mapping", lambda row: row.pool.map),
    Field("reserved_count", "ReservedCount", Kind.NUMBER, "Number of reserved addresses",
          lambda row: row.pool.taken_count),
    Field("group_list", "GroupList", Kind.OTHER,
          "List of nodegroups (group name, NIC mode, NIC link)", lambda row: row.groups),
    Field("group_cnt", "NodeGroups", Kind.NUMBER, "Number of nodegroups",
          lambda row: len(row.groups)),
    Field("inst_list", "InstanceList", Kind.OTHER, "List of instances", lambda row: row.instances),
    Field("inst_cnt", "Instances", Kind.NUMBER, "Number of instances",
          lambda row: len(row.instances)),
    Field("external_reservations", "ExternalReservations", Kind.TEXT, "External reservations",
          lambda row: ", ".join(row.pool.reserved())),
)
# fmt: on
NETWORK_FIELDS = table(_FIELDS, entity_fields("Network"))
