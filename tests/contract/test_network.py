"""What every network driver promises, kept by the real one and by the fake."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec, TapReport
from noded.network.fake import FakeNetwork
from noded.network.interface import NetworkDriver
from noded.network.linux import LinuxNetwork
from noded.network.naming import host_mac, read_alias, tap_name
from noded.network.netlink import Link, Netlink, open_netlink
from noded.network.tuntap import make_tap
from noded.system.execute import execute
from tests.support.namespace import in_new_network

T = TypeVar("T")
Scenario = Callable[[NetworkDriver], Awaitable[T]]
Run = Callable[[Scenario[None]], None]

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
NIC_A = NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a")
NIC_B = NicId("bbbbbbbb-bbbb-4ccc-8ddd-00000000000b")


def run_fake(scenario: Scenario[None]) -> None:
    async def main() -> None:
        await scenario(FakeNetwork("br0", "br1"))

    asyncio.run(main())


def run_real(scenario: Scenario[None]) -> None:
    def furnish(netlink: Netlink) -> None:
        for name in ("br0", "br1"):
            netlink._socket.link("add", ifname=name, kind="bridge")
        netlink._socket.link("add", ifname="veth0", kind="veth", peer={"ifname": "veth1"})

    async def main() -> None:
        await on_kernel(furnish)
        await scenario(LinuxNetwork())

    in_new_network(main)


async def on_kernel(work: Callable[[Netlink], T]) -> T:
    """Do something behind the driver's back."""

    def do() -> T:
        with open_netlink("test") as netlink:
            return work(netlink)

    return await asyncio.to_thread(do)


@pytest.fixture(params=[run_fake, run_real], ids=["fake", "linux"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


def nic(
    id: NicId = NIC_A, *, instance: InstanceId = WEB1, mode: str = "bridged", link: str = "br0",
    mac: str = "aa:00:00:12:34:56", ip: str = "", vlan: str = "",
) -> NicSpec:  # fmt: skip
    return NicSpec(id=id, instance=instance, mac=mac, ip=ip, mode=mode, link=link, vlan=vlan)


def test_tap_is_made_and_reported(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        (name,) = await network.ensure_taps((nic(),))
        assert name == "gntaaaaaaaabbb"
        report = TapReport(name=name, nic=NIC_A, instance=WEB1, link="br0")
        assert await network.taps() == (report,)

    run(scenario)


def test_making_may_be_repeated(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        nics = (nic(NIC_B, instance=WEB2), nic(NIC_A))
        names = await network.ensure_taps(nics)
        assert await network.ensure_taps(nics) == names
        assert [tap.nic for tap in await network.taps()] == [NIC_A, NIC_B]

    run(scenario)


def test_tap_moves_to_another_bridge(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        await network.ensure_taps((nic(link="br0"),))
        await network.ensure_taps((nic(link="br1"),))
        assert [tap.link for tap in await network.taps()] == ["br1"]

    run(scenario)


def test_removal_may_be_repeated_and_spares_others(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        await network.remove_taps((NIC_A,))
        await network.ensure_taps((nic(NIC_A), nic(NIC_B)))
        await network.remove_taps((NIC_A,))
        await network.remove_taps((NIC_A,))
        assert [tap.nic for tap in await network.taps()] == [NIC_B]
        await network.remove_taps(())
        assert [tap.nic for tap in await network.taps()] == [NIC_B]

    run(scenario)


def test_links_are_bridges(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        names = ("br1", "nosuch", "br0", "", "a-name-much-longer-than-15", "lo", "veth0")
        expected = (True, False, True, False, False, False, False)
        assert await network.links(names) == expected

    run(scenario)


@pytest.mark.parametrize("link", ["nosuch", "", "a-name-much-longer-than-15"])
def test_missing_bridge_is_told_and_leaves_nothing(run: Run, link: str) -> None:
    async def scenario(network: NetworkDriver) -> None:
        for call in (network.check, network.ensure_taps):
            with pytest.raises(NodeFailure, match="does not exist on this node; create it"):
                await call((nic(link=link),))
        assert await network.taps() == ()

    run(scenario)


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (nic(vlan=".5000"), InvalidRequest, "its numbers are from 1 to 4094"),
        (nic(mode="openvswitch", vlan="x"), InvalidRequest, "vlan cannot be “x”"),
        (nic(mode="wireless"), InvalidRequest, "bridged, routed or openvswitch"),
        (nic(mac="aa:00:00:12:34"), InvalidRequest, "no MAC address"),
        (nic(mac="AA:00:00:12:34:56"), InvalidRequest, "no MAC address"),
        (nic(NicId("../x")), InvalidRequest, "UUID"),
        (nic(mode="routed", link="main"), InvalidRequest, "needs an IP address"),
        (nic(mode="routed", link="main", ip="192.0.2.999"), InvalidRequest, "IP address"),
        (nic(mode="routed", link="br0", ip="192.0.2.7"), InvalidRequest, "routing table"),
    ],
)
def test_senseless_nic_is_refused(
    run: Run, bad: NicSpec, kind: type[Exception], words: str
) -> None:
    async def scenario(network: NetworkDriver) -> None:
        for call in (network.check, network.ensure_taps):
            with pytest.raises(kind, match=words):
                await call((bad,))
        assert await network.taps() == ()

    run(scenario)


def test_routed_nic_is_in_no_bridge(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        routed = nic(mode="routed", link="100", ip="192.0.2.7")
        await network.check((routed,))
        await network.ensure_taps((routed,))
        await network.ensure_taps((routed,))
        assert [tap.link for tap in await network.taps()] == [""]

    run(scenario)


def test_names_and_labels() -> None:
    assert len(tap_name(NIC_A)) <= 15
    assert host_mac("a6:01:02:12:34:56") == host_mac("fe:01:02:12:34:56") == "fe:01:02:12:34:56"
    for text in (None, "", "uplink", "gantry nic=x instance=y"):
        assert read_alias(text) is None


# From here on: what only a real kernel can do.


def link_named(netlink: Netlink, name: str) -> Link:
    link = netlink.find(name)
    assert link is not None
    return link


def test_taps_are_found_by_a_new_driver() -> None:
    async def scenario(network: NetworkDriver) -> None:
        await network.ensure_taps((nic(),))
        assert [tap.instance for tap in await LinuxNetwork().taps()] == [WEB1]
        await LinuxNetwork().remove_taps((NIC_A,))
        assert await network.taps() == ()

    run_real(scenario)


def test_tap_is_up_and_takes_the_mtu_of_its_bridge() -> None:
    def inspect(netlink: Netlink) -> None:
        message = netlink._socket.link("get", ifname=tap_name(NIC_A))[0]
        assert message.get("mtu") == 9000
        assert message["flags"] & 1  # IFF_UP
        assert message.get("address").startswith("fe:")
        assert link_named(netlink, "br0").mtu == 9000
        setting = Path(f"/proc/sys/net/ipv6/conf/{tap_name(NIC_A)}/disable_ipv6")
        assert setting.read_text() == "1\n"

    async def scenario(network: NetworkDriver) -> None:
        await on_kernel(lambda netlink: netlink.set(link_named(netlink, "br0"), mtu=9000))
        await network.ensure_taps((nic(),))
        await on_kernel(inspect)

    run_real(scenario)


def test_two_nodes_never_have_taps_with_one_address_though_the_guest_is_the_same() -> None:
    addresses = []

    async def scenario(network: NetworkDriver) -> None:
        def look(netlink: Netlink) -> str:
            return link_named(netlink, tap_name(NIC_A)).address

        await network.ensure_taps((nic(),))
        addresses.append(await on_kernel(look))
        await network.ensure_taps((nic(),))
        assert await on_kernel(look) == addresses[-1]

    run_real(scenario)
    run_real(scenario)
    assert len(set(addresses)) == 2
    assert all(address.startswith("fe:") for address in addresses)


def test_tap_that_noded_died_over_is_finished_or_removed() -> None:
    def names(netlink: Netlink) -> list[str]:
        return [link.name for link in netlink.all() if link.kind == "tun"]

    async def scenario(network: NetworkDriver) -> None:
        make_tap(tap_name(NIC_A))
        make_tap(tap_name(NIC_B))
        await network.ensure_taps((nic(NIC_A),))
        assert [tap.nic for tap in await network.taps()] == [NIC_A]
        await network.remove_taps(())
        assert await on_kernel(names) == [tap_name(NIC_A)]

    run_real(scenario)


def test_foreign_device_of_the_name_is_left_alone() -> None:
    name, words = tap_name(NIC_A), "somebody else's"

    async def scenario(network: NetworkDriver) -> None:
        make_tap(name)
        await on_kernel(lambda netlink: netlink.set(link_named(netlink, name), ifalias=words))
        with pytest.raises(NodeFailure, match="taken by something else"):
            await network.ensure_taps((nic(),))
        await network.remove_taps((NIC_A,))
        assert await on_kernel(lambda netlink: link_named(netlink, name).alias) == words

    run_real(scenario)


@pytest.mark.parametrize(("ip", "length"), [("192.0.2.7", 32), ("2001:db8::7", 128)])
def test_routed_nic_has_a_route(ip: str, length: int) -> None:
    def routes(netlink: Netlink) -> list[tuple[str, int]]:
        number = link_named(netlink, tap_name(NIC_A)).number
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        return [
            (message.get("dst"), message["dst_len"])
            for message in netlink._socket.route("dump", family=family, table=100)
            if message.get("oif") == number
        ]

    async def scenario(network: NetworkDriver) -> None:
        await network.ensure_taps((nic(mode="routed", link="100", ip=ip),))
        assert await on_kernel(routes) == [(ip, length)]

    run_real(scenario)


def test_refusal_of_the_kernel_is_a_sentence() -> None:
    with (
        pytest.raises(NodeFailure, match=r"Cannot plug in: No such device\."),
        open_netlink("plug in") as netlink,
    ):
        netlink.set(
            Link(
                number=99999999,
                name="x",
                kind="tun",
                alias="",
                address="",
                mtu=0,
                filters_vlans=False,
                bridge=0,
            ),
            state="up",
        )


def test_a_bridge_that_does_not_tell_vlans_apart_is_named() -> None:
    async def scenario(network: NetworkDriver) -> None:
        with pytest.raises(NodeFailure, match="ip link set br0 type bridge vlan_filtering 1"):
            await network.check((nic(vlan=".10"),))
        with pytest.raises(NodeFailure, match="does not tell VLANs apart"):
            await network.ensure_taps((nic(vlan=".10"),))
        assert await network.taps() == ()

    run_real(scenario)


def test_a_port_of_a_bridge_is_in_its_vlans_and_in_no_others() -> None:
    def filter_vlans(netlink: Netlink) -> bool:
        try:
            netlink._socket.link("set", ifname="br0", kind="bridge", br_vlan_filtering=1)
        except Exception:  # noqa: BLE001 -- whatever the kernel has against it
            return False
        return link_named(netlink, "br0").filters_vlans

    async def scenario(network: NetworkDriver) -> None:
        if not await on_kernel(filter_vlans):
            pytest.skip("NO VLAN TESTED: this kernel's bridges do not filter them")
        for _ in range(2):
            await network.ensure_taps((nic(vlan=".10:20"),))
            shown = await execute("bridge", "vlan", "show", "dev", tap_name(NIC_A), timeout_s=10)
            words = shown.stdout.decode().split()
            assert [word for word in words if word.isdecimal()] == ["10", "20"]

    run_real(scenario)
