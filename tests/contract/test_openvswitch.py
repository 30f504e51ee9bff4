"""Nics in switches: the fake and the real driver, with Debian's Open vSwitch, promise the same."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from common.errors import NodeFailure
from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec
from noded.network import switch_commands
from noded.network.fake import FakeNetwork
from noded.network.interface import NetworkDriver
from noded.network.linux import LinuxNetwork
from noded.network.naming import tap_name
from noded.network.netlink import Netlink, open_netlink
from noded.network.switch import Switches
from noded.system.threads import in_thread
from tests.support.namespace import in_new_network
from tests.support.openvswitch import DATABASE, SWITCH, OpenVSwitch, with_switches

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
NIC_A = NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a")
NIC_B = NicId("bbbbbbbb-bbbb-4ccc-8ddd-00000000000b")
TAP, OTHER_TAP = tap_name(NIC_A), tap_name(NIC_B)

Scenario = Callable[[NetworkDriver], Awaitable[None]]
RealScenario = Callable[[LinuxNetwork, OpenVSwitch], Awaitable[None]]


@pytest.fixture(params=["fake", "netdev", "system"])
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    def on_fake(scenario: Scenario) -> None:
        async def main() -> None:
            await scenario(FakeNetwork("br0", switches=("ovs0", "ovs1")))

        asyncio.run(main())

    def on_linux(scenario: Scenario) -> None:
        with_switches(request.param, lambda network, _: scenario(network))

    return on_fake if request.param == "fake" else on_linux


@pytest.fixture(params=["netdev", "system"])
def run_real(request: pytest.FixtureRequest) -> Callable[[RealScenario], None]:
    return lambda scenario: with_switches(request.param, scenario)


async def on_kernel(work: Callable[[Netlink], None]) -> None:
    """Do something behind the driver's back."""

    def do() -> None:
        with open_netlink("test") as netlink:
            work(netlink)

    await in_thread(do)


def nic(id: NicId = NIC_A, *, mode: str = "openvswitch", link: str = "ovs0",
        vlan: str = "", ip: str = "", guarded: bool = False) -> NicSpec:  # fmt: skip
    return NicSpec(
        id=id, instance=WEB1, mac="aa:00:00:12:34:56", ip=ip, mode=mode, link=link, vlan=vlan,
        guarded=guarded,
    )  # fmt: skip


async def links(network: NetworkDriver) -> list[str]:
    return [tap.link for tap in await network.taps()]


def test_a_nic_is_in_its_switch_however_often_it_is_asked_for(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(network: NetworkDriver) -> None:
        assert await network.links(("ovs0", "nosuch", "br0")) == (True, False, True)
        for _ in range(2):
            await network.check((nic(),))
            assert await network.ensure_taps((nic(), nic(NIC_B, link="ovs1"))) == (TAP, OTHER_TAP)
            assert await links(network) == ["ovs0", "ovs1"]

    run(scenario)


def test_a_nic_moves_between_switches_bridges_and_routes(run: Callable[[Scenario], None]) -> None:
    ways = (
        (nic(), "ovs0"),
        (nic(link="ovs1"), "ovs1"),
        (nic(mode="bridged", link="br0"), "br0"),
        (nic(), "ovs0"),
        (nic(mode="routed", link="100", ip="192.0.2.7"), ""),
        (nic(), "ovs0"),
    )

    async def scenario(network: NetworkDriver) -> None:
        for spec, where in ways:
            await network.ensure_taps((spec,))
            assert await links(network) == [where]

    run(scenario)


def test_removal_takes_a_nic_out_and_spares_others(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: NetworkDriver) -> None:
        await network.ensure_taps((nic(), nic(NIC_B)))
        for _ in range(2):
            await network.remove_taps((NIC_A,))
            assert [(tap.nic, tap.link) for tap in await network.taps()] == [(NIC_B, "ovs0")]

    run(scenario)


@pytest.mark.parametrize("link", ["nosuch", "", "br0", "a-name-much-longer-than-15"])
def test_a_missing_switch_is_told_and_leaves_nothing(
    run: Callable[[Scenario], None], link: str
) -> None:
    async def scenario(network: NetworkDriver) -> None:
        for call in (network.check, network.ensure_taps):
            with pytest.raises(NodeFailure, match="does not exist on this node; make it with"):
                await call((nic(NIC_B), nic(link=link)))
        assert await network.taps() == ()

    run(scenario)


# From here on: what only Open vSwitch can do.


@pytest.mark.parametrize(
    ("vlan", "stored"),
    [
        ("", ["[]", "[]", "[]"]),
        (".100", ["100", "[]", "access"]),
        ("100", ["100", "[]", "access"]),
        (":200:300", ["[]", "[200, 300]", "trunk"]),
        (".100:200:300", ["100", "[200, 300]", "native-untagged"]),
    ],
)
def test_a_port_is_in_its_vlans_and_in_no_others(
    run_real: Callable[[RealScenario], None], vlan: str, stored: list[str]
) -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        for before in (".7:8", ":9", vlan, vlan):
            await network.ensure_taps((nic(vlan=before),))
        told = await switch.tell("get", "port", TAP, "tag", "trunks", "vlan_mode")
        assert told.splitlines() == stored

    run_real(scenario)


def test_a_switch_that_is_a_vlan_of_another_keeps_nics_in_it(
    run_real: Callable[[RealScenario], None],
) -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await switch.tell("add-br", "ovs0.100", "ovs0", "100")
        for _ in range(2):
            await network.ensure_taps((nic(link="ovs0.100"),))
            assert await links(network) == ["ovs0.100"]
            assert await switch.tell("get", "port", TAP, "tag") == "100"
        with pytest.raises(NodeFailure, match="is VLAN 100 of 'ovs0', and has none of its own"):
            await network.check((nic(link="ovs0.100", vlan=".7"),))

    run_real(scenario)


def test_a_nic_that_is_to_be_guarded_is_in_no_switch_that_passes_filters_by() -> None:
    async def scenario(network: LinuxNetwork, _: OpenVSwitch) -> None:
        for call in (network.check, network.ensure_taps):
            with pytest.raises(NodeFailure, match="With datapath_type=netdev the switch 'ovs0'"):
                await call((nic(guarded=True),))
        assert await network.taps() == ()

    with_switches("netdev", scenario)


def test_switches_that_hand_frames_to_tc_pass_filters_by_and_others_do_not() -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await network.check((nic(guarded=True),))
        await switch.tell("set", "open_vswitch", ".", "other_config:hw-offload=true")
        with pytest.raises(NodeFailure, match="With hw-offload=true the switch 'ovs0'"):
            await network.check((nic(guarded=True),))
        await network.check((nic(),))

    with_switches("system", scenario)


def test_what_open_vswitch_cannot_plug_in_is_told_and_not_in_it(
    run_real: Callable[[RealScenario], None],
) -> None:
    async def scenario(_: LinuxNetwork, switch: OpenVSwitch) -> None:
        with pytest.raises(NodeFailure, match="could not open network device gnt0"):
            await Switches().plug("gnt0", nic())
        assert await switch.tell("list-ports", "ovs0") == ""

    run_real(scenario)


def test_a_tap_takes_the_mtu_of_its_switch(run_real: Callable[[RealScenario], None]) -> None:
    def inspect(netlink: Netlink) -> None:
        tap = netlink.find(TAP)
        assert tap is not None
        assert tap.mtu == 9000

    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await switch.tell("set", "interface", "ovs0", "mtu_request=9000")
        await network.ensure_taps((nic(),))
        await on_kernel(inspect)

    run_real(scenario)


def test_a_switch_that_is_down_is_told_in_time_and_keeps_nothing_of_what_failed(
    run_real: Callable[[RealScenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await network.ensure_taps((nic(NIC_B),))
        switch.kill(SWITCH)
        monkeypatch.setattr(switch_commands, "LIMIT_S", 5)
        with pytest.raises(NodeFailure, match="has not done it within 5 s"):
            await network.ensure_taps((nic(),))
        monkeypatch.undo()
        assert await switch.tell("--no-wait", "list-ports", "ovs0") == OTHER_TAP
        await network.ensure_taps((nic(NIC_B),))  # as it is already: nobody has to be waited for
        await network.remove_taps((NIC_A, NIC_B))
        await switch.start(SWITCH)
        assert await switch.tell("list-ports", "ovs0") == ""

    run_real(scenario)


@pytest.mark.parametrize("next_call", ["removal", "start of noded"])
def test_ports_of_taps_that_went_while_open_vswitch_was_down_are_taken_out_later(
    run_real: Callable[[RealScenario], None], next_call: str
) -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await network.ensure_taps((nic(), nic(NIC_B)))
        await switch.tell("add-port", "ovs0", "foreign", "--", "set", "interface", "foreign",
                          "type=internal")  # fmt: skip
        switch.kill(SWITCH)
        switch.kill(DATABASE)
        with pytest.raises(NodeFailure, match="database connection failed"):
            await network.check((nic(),))
        await network.remove_taps((NIC_A,))
        assert await links(network) == [""]
        await switch.start(DATABASE)
        await switch.start(SWITCH)
        assert TAP in await switch.tell("list-ports", "ovs0")
        await (network.remove_taps(()) if next_call == "removal" else LinuxNetwork().prepare())
        assert set((await switch.tell("list-ports", "ovs0")).split()) == {"foreign", OTHER_TAP}

    run_real(scenario)


def test_ports_of_another_network_namespace_are_left_alone() -> None:
    """Nodes may share a machine and its Open vSwitch, as those of the demonstration do."""

    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await network.ensure_taps((nic(),))

        async def elsewhere() -> None:
            await LinuxNetwork().remove_taps((NIC_A,))

        await asyncio.to_thread(in_new_network, elsewhere)
        assert await switch.tell("list-ports", "ovs0") == TAP

    with_switches("netdev", scenario)
