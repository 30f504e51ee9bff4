"""Taps are put into Open vSwitch, and into VLANs, by commands that say all of it."""

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from common.errors import NodeFailure
from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec
from common.vlans import Vlans, parse_vlans
from noded.network import switch_commands
from noded.network.switch import Switches
from noded.system.execute import CommandFailed, Finished


class Recorded:
    """Programs that remember what they are told.

    Args:
        ports: which devices are in which of the switches ovs0 and ovs1; gnt… are ours.
        status: with which all fail.
        answer: to a look, in the place of what is there.
        problem: of what was plugged in.
    """

    def __init__(
        self,
        ports: Mapping[str, str] = MappingProxyType({}),
        *,
        status: int = 0,
        answer: str = "",
        problem: str = "[]",
    ) -> None:
        self.problem = problem
        self.status, self.answer = status, answer or table_of(ports)
        self.told: list[str] = []
        self.read: list[str] = []

    @property
    def changes(self) -> list[str]:
        """What ovs-vsctl was told to change."""
        changes = [each for each in self.told if "-port" in each or "set port" in each]
        return [each.removeprefix("ovs-vsctl --timeout=8 ") for each in changes]

    async def __call__(self, *argv: str, stdin: bytes = b"", timeout_s: float) -> Finished:
        assert timeout_s > switch_commands.LIMIT_S
        self.told.append(" ".join(argv))
        self.read.append(stdin.decode())
        if self.status:
            raise CommandFailed("It said no.", argv=argv, status=self.status)
        return Finished(
            stdout=(self.answer if "list" in argv else self.problem).encode(), stderr=b""
        )


def table_of(ports: Mapping[str, str]) -> str:
    """Print switches as ovs-vsctl 3.1 does."""
    bridges, rows = [], []
    for bridge in ("ovs0", "ovs1"):
        own = [bridge, *(name for name, where in ports.items() if where == bridge)]
        bridges.append([bridge, "", ["set", [["uuid", name] for name in own]]])
    for name in ("ovs0", "ovs1", *ports):
        label = [["gantry-nic", "n"]] if name.startswith("gnt") else []
        rows.append([["uuid", name], name, ["set", []], False, ["map", label]])
    tables = (
        (("name", "datapath_type", "ports"), bridges),
        (("_uuid", "name", "tag", "fake_bridge", "external_ids"), rows),
        (("other_config",), [[["map", []]]]),
    )
    return "\n".join(json.dumps({"headings": heads, "data": data}) for heads, data in tables)


def nic(**changes: Any) -> NicSpec:
    fields = {"mode": "openvswitch", "link": "ovs0", "vlan": ""} | changes
    return NicSpec(id=NicId("n"), instance=InstanceId("i"), mac="aa:00:00:00:00:01", **fields)


@pytest.mark.parametrize(
    ("text", "vlans"),
    [
        ("", Vlans()),
        (".10", Vlans(10)),
        ("10", Vlans(10)),
        (":20:10", Vlans(None, (10, 20))),
        (".10:20:30", Vlans(10, (20, 30))),
    ],
)
def test_vlans_are_read_as_ganeti_writes_them(text: str, vlans: Vlans) -> None:
    assert parse_vlans(text) == vlans


@pytest.mark.parametrize(
    "text", ["x", ".", ":", ".10.20", "10:", ".0", ".4095", ".7:7", ":7:7", " .1"]
)
def test_what_is_no_vlan_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="vlan cannot be"):
        parse_vlans(text)


@pytest.mark.parametrize(
    ("vlan", "told"),
    [
        ("", ""),
        (".10", " tag=10 vlan_mode=access"),
        (":10:20", " trunks=10,20 vlan_mode=trunk"),
        (".10:20", " tag=10 trunks=20 vlan_mode=native-untagged"),
    ],
)
def test_a_tap_is_put_into_its_switch_with_its_vlans_alone(vlan: str, told: str) -> None:
    run = Recorded()
    asyncio.run(Switches(run, is_installed=True).plug("gnt1", nic(vlan=vlan)))
    begin = "--if-exists del-port gnt1 -- add-port ovs0 gnt1 -- "
    assert run.changes == [
        f"{begin}clear port gnt1 tag trunks vlan_mode -- "
        f"set port gnt1 external_ids:gantry-nic=n{told}"
    ]


@pytest.mark.parametrize(("there", "moves"), [("ovs0", False), ("ovs1", True)])
def test_a_tap_that_is_in_its_switch_stays_plugged_in(there: str, moves: bool) -> None:
    run = Recorded(ports={"gnt1": there})
    asyncio.run(Switches(run, is_installed=True).plug("gnt1", nic()))
    assert ("del-port" in run.changes[0]) is moves


@pytest.mark.parametrize(("there", "stays"), [({}, False), ({"gnt1": "ovs0"}, True)])
def test_a_tap_that_cannot_be_plugged_in_is_in_its_switch_only_if_it_was(
    there: dict[str, str], stays: bool
) -> None:
    run = Recorded(ports=there, problem='"no such device"')
    with pytest.raises(NodeFailure, match=r"Cannot plug gnt1 into ovs0: no such device\."):
        asyncio.run(Switches(run, is_installed=True).plug("gnt1", nic()))
    assert (run.changes[-1] == "--no-wait -- --if-exists del-port gnt1") is not stays


def test_a_switch_that_is_not_there_is_told_from_one_that_does_not_answer() -> None:
    for switches, said in (
        (Recorded(), "ovs-vsctl add-br ovs9"),
        (Recorded(status=1), "It said no"),
        (Recorded(status=-14), "has not done it within 8 s; “systemctl status"),
        (Recorded(answer="{}"), "answers in another form: '{}'"),
    ):
        with pytest.raises(NodeFailure, match=said):
            asyncio.run(Switches(switches, is_installed=True).check((nic(link="ovs9"),)))
    with pytest.raises(NodeFailure, match="install openvswitch-switch"):
        asyncio.run(Switches(Recorded(), is_installed=False).check((nic(),)))
    asyncio.run(Switches(Recorded(status=1)).check((nic(mode="bridged"),)))


def test_taps_that_are_gone_are_taken_out_in_one_go() -> None:
    run = Recorded(ports=dict.fromkeys(("gnt1", "gnt2", "gnt3", "eth1"), "ovs0"))
    switches = Switches(run, is_installed=True)
    asyncio.run(switches.forget(("gnt1", "gnt9"), links={"ovs0", "gnt3"}, devices={"ovs0"}))
    asyncio.run(switches.unplug(()))
    asyncio.run(switches.unplug(("gnt9",)))
    assert run.changes == ["--no-wait -- --if-exists del-port gnt1 -- --if-exists del-port gnt2"]
    assert asyncio.run(switches.names()) == {"ovs0", "ovs1"}
    nobody = Recorded()
    asyncio.run(Switches(nobody, is_installed=False).unplug(("gnt1",)))
    assert nobody.told == []


def test_a_tap_that_stays_is_waited_for_until_the_switch_has_let_go_of_it() -> None:
    run = Recorded(ports={"gnt1": "ovs0"})
    asyncio.run(Switches(run, is_installed=True).unplug(("gnt1",)))
    assert run.changes == ["-- --if-exists del-port gnt1"]
    silent = Switches(Recorded(ports={"gnt1": "ovs0"}, status=1), is_installed=True)
    with pytest.raises(NodeFailure, match="Open vSwitch does not do it"):
        asyncio.run(silent.unplug(("gnt1",)))


def test_what_cannot_be_taken_out_now_keeps_nobody_from_anything() -> None:
    switches = Switches(Recorded(status=1), is_installed=True)
    asyncio.run(switches.forget(("gnt1",), links=(), devices=("ovs0",)))
    assert asyncio.run(switches.names()) == frozenset()
    assert asyncio.run(switches.plugged_in()) == {}


def test_a_port_of_a_bridge_leaves_all_vlans_but_its_own() -> None:
    run = Recorded()
    asyncio.run(Switches(run).tag("gnt1", nic(mode="bridged", link="br0", vlan=".10:20")))
    assert run.told == ["bridge -batch -"]
    assert run.read == [
        "vlan del dev gnt1 vid 1-4094\n"
        "vlan add dev gnt1 vid 10 pvid untagged\n"
        "vlan add dev gnt1 vid 20\n"
    ]
    assert switch_commands.bridge_vlans("gnt1", Vlans(None, (7,))).endswith("vid 7\n")


def test_what_others_have_labelled_their_ports_with_spoils_no_look() -> None:
    label = "\u2028of a\u0085guest"  # lines to Python, and none to ovs-vsctl
    run = Recorded(answer=table_of({"tap7": "ovs0"}).replace("tap7", f"tap7{label}"))
    plugged_in = asyncio.run(Switches(run, is_installed=True).plugged_in())
    assert plugged_in[f"tap7{label}"] == "ovs0"


def test_a_tap_that_is_told_to_be_gone_is_taken_out_though_nothing_labels_it() -> None:
    run = Recorded(ports={"tap1": "ovs0", "tap2": "ovs0"})  # as earlier versions have plugged in
    switches = Switches(run, is_installed=True)
    asyncio.run(switches.forget(("tap1",), links={"ovs0"}, devices={"ovs0"}))
    assert run.changes == ["--no-wait -- --if-exists del-port tap1"]


def test_a_switch_that_passes_filters_by_takes_nics_that_need_none() -> None:
    answer = table_of({}).replace('["ovs0", ""', '["ovs0", "netdev"')
    switches = Switches(Recorded(answer=answer), is_installed=True)
    asyncio.run(switches.check((nic(guarded=False),)))
    with pytest.raises(NodeFailure, match="With datapath_type=netdev the switch 'ovs0'"):
        asyncio.run(switches.check((nic(guarded=True),)))
