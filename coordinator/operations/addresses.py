"""Addresses for nics: such as no nic of the cluster has, and no other job is about to give one."""

import hashlib
from collections.abc import Iterable

from common.errors import Conflict, InvalidRequest
from common.model.address_pool import AddressPool
from common.model.instance import Instance
from common.model.network import Network
from common.model.nic import Nic
from common.names import GroupId, NetworkId, NicId, NodeId
from coordinator.state.config import Config

ATTEMPTS = 256


class Addresses:
    """Gives out MAC and IP addresses; what was given is taken from then on."""

    def __init__(self, config: Config, promised: Iterable[Nic] = ()) -> None:
        """Look at all nics.

        Args:
            config: with the nics that there are.
            promised: those that other jobs are about to add.
        """
        self._config = config
        self._nics = [*config.nics.values(), *promised]
        self._macs = {nic.mac for nic in self._nics}
        self._pools: dict[NetworkId, AddressPool] = {}

    def new_mac(self, nic: NicId, network: Network | None, *, before: str = "") -> str:
        """Make an address with the prefix of the network, or of the cluster.

        Args:
            nic: whose.
            network: which it is in.
            before: its address so far, which it does not get again.

        Raises:
            InvalidRequest: all that were tried are taken.
        """
        own = network.mac_prefix if network else ""
        prefix = (own or self._config.cluster.mac_prefix).lower()  # nodes know one way to write it
        for attempt in range(ATTEMPTS):
            digest = hashlib.sha256(f"{nic}/{attempt}".encode()).hexdigest()
            mac = f"{prefix}:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"
            if mac not in self._macs and mac != before:
                self._macs.add(mac)
                return mac
        raise InvalidRequest(f"The MAC prefix {prefix} is used up.")

    def take_mac(self, mac: str) -> str:
        """Take an address that somebody asks for.

        Raises:
            Conflict: another nic has it, or is about to get it.
        """
        if mac in self._macs:
            owners = [nic.uuid for nic in self._config.nics.values() if nic.mac == mac]
            instances = self._config.instances.values()
            named = (i.name for i in instances if owners and owners[0] in i.nics)
            owner = next(named, "an instance that is being made")
            raise Conflict(f"The MAC address {mac} is taken by a nic of {owner}.", mac=mac)
        self._macs.add(mac)
        return mac

    def new_ip(self, network: Network) -> str:
        """Take the first address of a network that is free: of version 4 where it has such.

        Raises:
            NoCapacity: there is none.
        """
        return self._pool(network).take_free()

    def take_ip(self, network: Network, ip: str) -> str:
        """Take an address of a network that somebody asks for.

        Raises:
            InvalidRequest: it is none of the network's.
            Conflict: it is taken, or reserved.
        """
        self._pool(network).take(ip)
        return ip

    def is_inside(self, network: Network, ip: str) -> bool:
        """Tell whether this is an address of a network."""
        return self._pool(network).is_inside(ip)

    def release(self, nic: Nic) -> None:
        """Take back what a nic has, since it is to get others."""
        self._nics = [each for each in self._nics if each.uuid != nic.uuid]
        self._macs.discard(nic.mac)
        if nic.ip and nic.network in self._pools:
            self._pools[nic.network].release(nic.ip)

    def _pool(self, network: Network) -> AddressPool:
        if network.uuid not in self._pools:
            used = (nic.ip for nic in self._nics if nic.network == network.uuid and nic.ip)
            self._pools[network.uuid] = AddressPool(network, used)
        return self._pools[network.uuid]


def networks_of(config: Config, instance: Instance) -> tuple[NetworkId, ...]:
    """Return the networks that an instance's nics are in: they stay while it goes elsewhere."""
    return tuple({nic.network: None for nic in config.nics_of(instance) if nic.network})


def check_apart(config: Config, group: GroupId, nics: Iterable[Nic]) -> None:
    """Refuse an address outside of all networks that a network of the group has, too.

    Raises:
        Conflict: names the network.
    """
    connected = config.groups[group].networks
    networks = [config.networks[uuid] for uuid in connected if uuid in config.networks]
    for nic in nics:
        for network in networks:
            if nic.ip and not nic.network and AddressPool(network).is_inside(nic.ip):
                raise Conflict(
                    f"{nic.ip} is an address of the network {network.name}: give the nic "
                    f"network={network.name}, or --no-conflicts-check.",
                    network=network.name,
                )


def check_connected(config: Config, nics: Iterable[Nic], at: NodeId) -> None:
    """Refuse a node where nics could not be plugged into their networks.

    Raises:
        Conflict: names network and group.
    """
    group = config.groups[config.nodes[at].group]
    for nic in nics:
        if nic.network and nic.network not in group.networks:
            network = config.networks[nic.network].name
            raise Conflict(
                f"The group {group.name} is not connected to the network {network}, which a nic "
                f"is in; “gnt-network connect {network} {group.name}” does that.",
                network=network,
                group=group.name,
            )
