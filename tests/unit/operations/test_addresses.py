"""Addresses that are given out are nobody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.address_pool import AddressPool
from common.model.cluster import Cluster
from common.model.network import Network
from common.model.nic import Nic
from common.names import ClusterId, ClusterName, NetworkId, NetworkName, NicId, NodeId
from coordinator.operations.addresses import Addresses
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State

CLUSTER = Cluster(uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"))
LAN = Network(
    uuid=NetworkId("n"), name=NetworkName("lan"), network="192.0.2.0/29", gateway="192.0.2.1",
    reserved=("192.0.2.3",),
)  # fmt: skip


def config(*nics: Nic) -> Config:
    return State().apply([Put(CLUSTER), Put(LAN), *map(Put, nics)]).config


def nic(name: str, mac: str, ip: str = "", *, network: NetworkId = LAN.uuid) -> Nic:
    return Nic(uuid=NicId(name), mac=mac, ip=ip, network=network)


def test_a_new_mac_has_the_prefix_and_is_nobody_elses() -> None:
    first = Addresses(config()).new_mac(NicId("nic"), None)
    assert first.startswith("aa:00:00:")
    assert Addresses(config()).new_mac(NicId("nic"), None) == first
    taken = Addresses(config(nic("other", first)))
    assert taken.new_mac(NicId("nic"), None) != first


def test_a_mac_that_another_job_is_about_to_give_is_given_to_nobody_else() -> None:
    first = Addresses(config()).new_mac(NicId("nic"), None)
    addresses = Addresses(config(), [nic("planned", first)])
    assert addresses.new_mac(NicId("nic"), None) != first
    with pytest.raises(Conflict, match="taken by a nic of an instance that is being made"):
        addresses.take_mac(first)


def test_a_network_may_have_a_mac_prefix_of_its_own() -> None:
    network = Network(uuid=LAN.uuid, name=LAN.name, network=LAN.network, mac_prefix="02:AB:cd")
    assert Addresses(config()).new_mac(NicId("nic"), network).startswith("02:ab:cd:")


def test_free_addresses_are_given_in_order_until_there_are_none() -> None:
    addresses = Addresses(
        config(nic("a", "aa:00:00:00:00:01", "192.0.2.4")),
        [nic("b", "aa:00:00:00:00:02", "192.0.2.5")],
    )
    assert [addresses.new_ip(LAN) for _ in range(2)] == ["192.0.2.2", "192.0.2.6"]
    with pytest.raises(NoCapacity, match=r"All addresses of the network lan \(192.0.2.0/29\)"):
        addresses.new_ip(LAN)


@pytest.mark.parametrize(
    ("ip", "error", "why"),
    [
        ("192.0.2.0", Conflict, "192.0.2.0 is reserved in the network lan"),
        ("192.0.2.1", Conflict, "reserved"),
        ("192.0.2.3", Conflict, "reserved"),
        ("192.0.2.4", Conflict, "192.0.2.4 is taken by a nic in the network lan"),
        ("192.0.2.7", Conflict, "reserved"),
        ("192.0.2.8", InvalidRequest, "is not in the network lan, which is 192.0.2.0/29"),
    ],
)
def test_an_address_that_cannot_be_had_is_refused(
    ip: str, error: type[Exception], why: str
) -> None:
    addresses = Addresses(config(nic("a", "aa:00:00:00:00:01", "192.0.2.4")))
    with pytest.raises(error, match=why):
        addresses.take_ip(LAN, ip)


def test_what_a_nic_had_can_be_given_again() -> None:
    mine = nic("a", "aa:00:00:00:00:01", "192.0.2.4")
    addresses = Addresses(config(mine))
    addresses.release(mine)
    assert addresses.take_ip(LAN, mine.ip) == mine.ip
    assert addresses.take_mac(mine.mac) == mine.mac


@given(st.sets(st.integers(0, 255)), st.integers(24, 30))
def test_the_map_counts_and_gives_exactly_what_is_free(used: set[int], length: int) -> None:
    network = Network(uuid=LAN.uuid, name=LAN.name, network=f"198.51.100.0/{length}")
    pool = AddressPool(network, [f"198.51.100.{number}" for number in used])
    free = [number for number, letter in enumerate(pool.map) if letter == "."]
    assert pool.size - pool.taken_count == len(free)
    for number in free:
        assert pool.take_free() == f"198.51.100.{number}"
    with pytest.raises(NoCapacity):
        pool.take_free()
