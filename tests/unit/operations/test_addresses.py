"""Addresses that are given out are nobody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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


SIX = Network(
    uuid=LAN.uuid, name=LAN.name, network="", network6="2001:db8::/64", gateway6="2001:db8::1",
    reserved=("2001:db8::3",),
)  # fmt: skip
BOTH = replace(LAN, network6=SIX.network6, gateway6=SIX.gateway6, reserved=("2001:db8::3",))


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


@given(st.sets(st.integers(0, 99)), st.integers(26, 30))
def test_the_map_counts_and_gives_exactly_what_is_free(used: set[int], length: int) -> None:
    network = Network(uuid=LAN.uuid, name=LAN.name, network=f"198.51.100.0/{length}")
    pool = AddressPool(network, [f"198.51.100.{number}" for number in used])
    free = [number for number, letter in enumerate(pool.map) if letter == "."]
    assert pool.size - pool.taken_count == len(free)
    for number in free:
        assert pool.take_free() == f"198.51.100.{number}"
    with pytest.raises(NoCapacity):
        pool.take_free()


def test_a_network_of_version_6_alone_gives_its_lowest_free_addresses_and_needs_no_map() -> None:
    pool = AddressPool(SIX, ["2001:DB8:0::4", "2001:db9::5", "192.0.2.2"])
    assert (pool.size, pool.taken_count, pool.map) == (2**64, 4, "")
    assert list(pool.reserved()) == ["2001:db8::", "2001:db8::1", "2001:db8::3"]
    assert [pool.take_free() for _ in range(3)] == ["2001:db8::2", "2001:db8::5", "2001:db8::6"]
    assert pool.taken_count == 7


def test_a_small_network_of_version_6_is_mapped_and_has_its_last_address_to_give() -> None:
    pool = AddressPool(replace(SIX, network6="2001:db8::/126"))
    assert (pool.size, pool.taken_count, pool.map) == (4, 3, "XX.X")
    assert AddressPool(replace(SIX, network6="2001:db8::/126", reserved=())).map == "XX.."
    assert pool.take_free() == "2001:db8::2"
    with pytest.raises(NoCapacity, match=r"lan \(2001:db8::/126\) are taken"):
        pool.take_free()


def test_a_network_of_both_versions_gives_those_of_version_4_and_counts_them_alone() -> None:
    pool = AddressPool(BOTH, ["2001:db8::2", "192.0.2.2"])
    assert (pool.size, pool.taken_count, pool.map) == (8, 4, "XXX....X")
    assert list(pool.reserved()) == [
        "192.0.2.0", "192.0.2.1", "192.0.2.7", "2001:db8::", "2001:db8::1", "2001:db8::3",
    ]  # fmt: skip
    assert pool.take_free() == "192.0.2.3"


@pytest.mark.parametrize("network", [SIX, BOTH])
@pytest.mark.parametrize(
    ("ip", "error", "why"),
    [
        ("2001:db8::", Conflict, "2001:db8:: is reserved in the network lan"),
        ("2001:db8::1", Conflict, "reserved"),
        ("2001:db8:0::3", Conflict, "reserved"),
        ("2001:DB8::0:4", Conflict, "2001:DB8::0:4 is taken by a nic in the network lan"),
        ("2001:db9::4", InvalidRequest, "is not in the network lan, which is .*2001:db8::/64"),
        ("2001:db8::9%eth0", InvalidRequest, "is not in the network lan"),
    ],
)
def test_an_address_of_version_6_that_cannot_be_had_is_refused_however_it_is_written(
    network: Network, ip: str, error: type[Exception], why: str
) -> None:
    addresses = Addresses(config(nic("a", "aa:00:00:00:00:01", "2001:db8::4")))
    with pytest.raises(error, match=why):
        addresses.take_ip(network, ip)
    assert addresses.take_ip(network, "2001:db8::ffff:ffff:ffff:ffff")


def test_a_network_of_version_4_has_no_address_of_version_6() -> None:
    with pytest.raises(InvalidRequest, match=r"is not in the network lan, which is 192\.0\.2"):
        Addresses(config()).take_ip(LAN, "2001:db8::4")
