"""Taps are put into Open vSwitch, and into VLANs, by commands that say all of it."""

import asyncio
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
    """Programs that do nothing but remember; one of a status of its own fails with that."""

    def __init__(self, **answers: str | int) -> None:
        self.answers = answers
        self.told: list[str] = []
        self.read: list[str] = []

    async def __call__(self, *argv: str, stdin: bytes = b"", timeout_s: float) -> Finished:
        assert timeout_s > 0
        self.told.append(" ".join(argv))
        self.read.append(stdin.decode())
        answer = self.answers.get(argv[1].replace("-", "_"), "")
        if isinstance(answer, int):
            raise CommandFailed("It said no.", argv=argv, status=answer)
        return Finished(stdout=answer.encode(), stderr=b"")


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
        (".10", " -- set port gnt1 tag=10 vlan_mode=access"),
        (":10:20", " -- set port gnt1 trunks=10,20 vlan_mode=trunk"),
        (".10:20", " -- set port gnt1 tag=10 trunks=20 vlan_mode=native-untagged"),
    ],
)
def test_a_tap_is_put_into_its_switch_with_its_vlans_alone(vlan: str, told: str) -> None:
    run = Recorded(port_to_br=1)
    asyncio.run(Switches(run, is_installed=True).plug("gnt1", nic(vlan=vlan)))
    begin = "ovs-vsctl --if-exists del-port gnt1 -- add-port ovs0 gnt1 -- "
    assert run.told[-1] == f"{begin}clear port gnt1 tag trunks vlan_mode{told}"


@pytest.mark.parametrize(("there", "moves"), [("ovs0\n", False), ("ovs1\n", True)])
def test_a_tap_that_is_in_its_switch_stays_plugged_in(there: str, moves: bool) -> None:
    run = Recorded(port_to_br=there)
    asyncio.run(Switches(run, is_installed=True).plug("gnt1", nic()))
    assert ("del-port" in run.told[-1]) is moves


def test_a_switch_that_is_not_there_is_told_from_one_that_does_not_answer() -> None:
    for status, said in ((2, "ovs-vsctl add-br ovs0"), (1, "does not answer")):
        with pytest.raises(NodeFailure, match=said):
            asyncio.run(Switches(Recorded(br_exists=status), is_installed=True).check("ovs0"))
    with pytest.raises(NodeFailure, match="install openvswitch-switch"):
        asyncio.run(Switches(Recorded(), is_installed=False).check("ovs0"))


def test_taps_that_are_gone_are_taken_out_in_one_go() -> None:
    run = Recorded(list_br="ovs0\novs1\n")
    switches = Switches(run, is_installed=True)
    asyncio.run(switches.unplug(("gnt1", "gnt2")))
    asyncio.run(switches.unplug(()))
    assert run.told == ["ovs-vsctl --if-exists del-port gnt1 -- --if-exists del-port gnt2"]
    assert asyncio.run(switches.names()) == {"ovs0", "ovs1"}
    nobody = Recorded()
    asyncio.run(Switches(nobody, is_installed=False).unplug(("gnt1",)))
    assert nobody.told == []


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
