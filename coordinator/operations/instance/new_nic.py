"""The network and the addresses of nics that are made, or changed."""

from collections.abc import Container, Sequence

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.nic import Nic
from common.model.parameters import Layer
from common.names import NetworkId, NicId
from coordinator.operations.addresses import Addresses
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import POOL, NicRequest
from coordinator.operations.placement.numbers import free_addresses
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


def new_nics(cluster: Cluster, requests: Sequence[NicRequest]) -> tuple[Nic, ...]:
    """Return nics as they are asked for, with addresses that nobody else has.

    Raises:
        NotFound: there is no such network.
        InvalidRequest, Conflict, NoCapacity: an address cannot be had.
    """
    now, addresses = cluster.now(), free_addresses(cluster)
    made = []
    for asked in requests:
        nic = Nic(
            uuid=NicId(cluster.new_uuid()),
            ctime=now,
            mtime=now,
            name=asked.name,
            mac="",
            nicparams=asked.parameters(),
        )
        told = asked.__struct_fields__
        made.append(with_addresses(nic, asked, told, addresses, cluster.config))
    return tuple(made)


def with_addresses(
    nic: Nic, asked: NicRequest, told: Container[str], addresses: Addresses, config: Config
) -> Nic:
    """Return a nic with the network and the addresses that are asked for.

    Args:
        nic: as it is, or a new one.
        asked: as it is to be.
        told: the fields of ``asked`` that count; the others stay as they are.
        addresses: which are free. The nic's own have been taken back.
        config: for its networks.

    Raises:
        NotFound: there is no such network.
        InvalidRequest, Conflict, NoCapacity: an address cannot be had.
    """
    network = config.networks.get(nic.network)
    if "network" in told:
        network = config.get(NETWORK, asked.network) if asked.network else None
        if network and network.uuid != nic.network:
            nic = replace(nic, nicparams=_own(nic.nicparams))
        nic = replace(nic, network=network.uuid if network else NetworkId(""))
    elif network and asked.parameters().keys() - {"guarded"}:
        raise InvalidRequest(
            f"A nic of the network {network.name} is plugged in as the network says; give "
            "network=none to have it otherwise."
        )
    ip = (asked.ip or "") if "ip" in told else nic.ip
    is_asked = "ip" in told or "network" in told
    if ip == POOL:
        if network is None:
            raise InvalidRequest("Addresses are found by ip=pool in a network only: network=NAME.")
        ip = addresses.new_ip(network)
    elif ip and network and (is_asked or addresses.is_inside(network, ip)):
        addresses.take_ip(network, ip)  # the range may have changed since it was given
    mac = asked.wanted_mac() if "mac" in told else nic.mac
    mac = addresses.take_mac(mac) if mac else addresses.new_mac(nic.uuid, network, before=nic.mac)
    return replace(nic, ip=ip, mac=mac)


def _own(parameters: Layer) -> Layer:
    """Return those parameters of a nic that its network does not decide."""
    return {name: value for name, value in parameters.items() if name == "guarded"}
