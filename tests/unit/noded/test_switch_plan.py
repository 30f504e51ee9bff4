"""Where nics go among the switches that are there, as Debian's Open vSwitch 3.1 tells of them."""

import re

import pytest

from common.errors import NodeFailure
from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec
from common.vlans import Vlans
from noded.network.switch_parse import Port, read_problem, read_switches
from noded.network.switch_plan import left_over, place

# ovs1 is in user space; ovs0.100 is VLAN 100 of ovs0; gnt1 is in that, and gnt2 in all of ovs0.
TOLD = """\
{"data":[["ovs1","netdev",["uuid","b1"]],["ovs0","",["set",[["uuid","b0"],["uuid","b0.100"],\
["uuid","g1"],["uuid","g2"],["uuid","e1"]]]]],"headings":["name","datapath_type","ports"]}
{"data":[[["uuid","g1"],"gnt1",100,false,["map",[["gantry-nic","n1"]]]],\
[["uuid","b1"],"ovs1",["set",[]],false,["map",[]]],\
[["uuid","b0.100"],"ovs0.100",100,true,["map",[]]],\
[["uuid","b0"],"ovs0",["set",[]],false,["map",[]]],\
[["uuid","e1"],"eth1",7,false,["map",[["other","x"]]]],\
[["uuid","g2"],"gnt2",["set",[]],false,["map",[["gantry-nic","n2"]]]]],\
"headings":["_uuid","name","tag","fake_bridge","external_ids"]}
{"data":[[["map",[["vlan-limit","2"]]]]],"headings":["other_config"]}
"""
OFFLOADED = TOLD.replace('"vlan-limit","2"', '"hw-offload","true"')


def nic(link: str, vlan: str = "", *, guarded: bool = True) -> NicSpec:
    return NicSpec(
        id=NicId("n"), instance=InstanceId("i"), mac="aa:00:00:00:00:01", mode="openvswitch",
        link=link, vlan=vlan, guarded=guarded,
    )  # fmt: skip


def test_ports_are_told_with_the_vlan_that_has_a_name() -> None:
    seen = read_switches(TOLD)
    assert set(seen.switches) == {"ovs0", "ovs1", "ovs0.100"}
    assert seen.ports["gnt1"] == Port(
        name="gnt1", bridge="ovs0", switch="ovs0.100", nic=NicId("n1")
    )
    assert {name: port.switch for name, port in seen.ports.items() if not port.nic} == {
        "ovs1": "ovs1", "ovs0.100": "ovs0.100", "ovs0": "ovs0", "eth1": "ovs0",
    }  # fmt: skip


def test_a_port_of_no_bridge_is_left_out() -> None:
    """Nor does one that is lost keep all others from being seen."""
    lost = TOLD.replace('["uuid","g1"],["uuid","g2"],', '["uuid","g2"],')
    assert read_switches(lost).ports.keys() == read_switches(TOLD).ports.keys() - {"gnt1"}
    lost = TOLD.replace('["uuid","b0.100"],', "", 1)
    assert read_switches(lost).switches.keys() == {"ovs0", "ovs1"}
    assert read_switches(lost).ports["gnt1"].switch == "ovs0"


@pytest.mark.parametrize(
    ("link", "vlan", "where"),
    [
        ("ovs0", "", ("ovs0", Vlans())),
        ("ovs0", ".7:8", ("ovs0", Vlans(7, (8,)))),
        ("ovs0.100", "", ("ovs0", Vlans(100))),
    ],
)
def test_a_nic_is_in_the_vlan_of_its_link_or_in_its_own(
    link: str, vlan: str, where: tuple[str, Vlans]
) -> None:
    assert place(read_switches(TOLD), nic(link, vlan)) == where


@pytest.mark.parametrize(
    ("told", "refused", "words"),
    [
        (TOLD, nic("ovs9"), "does not exist on this node; make it with “ovs-vsctl add-br ovs9”"),
        (TOLD, nic("eth1"), "does not exist"),
        (TOLD, nic("ovs0.100", ".7"), "is VLAN 100 of 'ovs0', and has none of its own"),
        (TOLD, nic("ovs1"), "With datapath_type=netdev the switch 'ovs1' forwards frames before"),
        (OFFLOADED, nic("ovs0.100"), "With hw-offload=true the switch 'ovs0.100'"),
    ],
)
def test_what_a_switch_cannot_do_is_refused_by_name(
    told: str, refused: NicSpec, words: str
) -> None:
    with pytest.raises(NodeFailure, match=re.escape(words)):
        place(read_switches(told), refused)


def test_a_nic_that_may_use_any_address_needs_no_filter() -> None:
    assert place(read_switches(TOLD), nic("ovs1", guarded=False)) == ("ovs1", Vlans())
    assert place(read_switches(OFFLOADED), nic("ovs0", guarded=False)) == ("ovs0", Vlans())


@pytest.mark.parametrize(
    ("links", "devices", "gone"),
    [
        ({"ovs0"}, {"ovs0"}, ("gnt1", "gnt2")),
        ({"ovs0", "gnt2"}, {"ovs0"}, ("gnt1",)),
        (set[str](), set[str](), ()),
        ({"ovs1"}, {"ovs1"}, ()),
    ],
)
def test_only_ports_of_our_taps_that_are_gone_from_here_are_left_over(
    links: set[str], devices: set[str], gone: tuple[str, ...]
) -> None:
    assert left_over(read_switches(TOLD), links, devices) == gone


def test_why_a_port_does_not_work_is_read() -> None:
    assert read_problem("[]\n") == ""
    said = '"could not open network device gnt1 (No such device)"\n'
    assert read_problem(said) == "could not open network device gnt1 (No such device)"


@pytest.mark.parametrize("text", ["", "[]", "{}\n{}\n{}", TOLD.replace("data", "date")])
def test_another_form_is_told(text: str) -> None:
    with pytest.raises(NodeFailure, match="Open vSwitch answers in another form"):
        read_switches(text)
