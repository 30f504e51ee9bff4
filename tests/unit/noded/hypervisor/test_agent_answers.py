"""What a guest says of its addresses is believed as far as it makes sense, and no further."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.messages import from_json, to_json
from common.noderpc.guest_agent import (
    MOST_ADDRESSES,
    MOST_INTERFACES,
    Interface,
    Interfaces,
)
from noded.hypervisor.kvm.agent_answers import parse_interfaces

# Recorded from Debian's agent 7.2, shortened.
RECORDED: list[dict[str, Any]] = [
    {
        "name": "lo",
        "ip-addresses": [
            {"ip-address-type": "ipv4", "ip-address": "127.0.0.1", "prefix": 8},
            {"ip-address-type": "ipv6", "ip-address": "::1", "prefix": 128},
        ],
        "hardware-address": "00:00:00:00:00:00",
        "statistics": {"tx-packets": 1, "rx-bytes": 2},
    },
    {
        "name": "ens3",
        "ip-addresses": [
            {"ip-address-type": "ipv4", "ip-address": "192.0.2.7", "prefix": 24},
            {"ip-address-type": "ipv6", "ip-address": "2001:DB8:0::7", "prefix": 64},
            {"ip-address-type": "ipv6", "ip-address": "fe80::a800:ff:fe00:1", "prefix": 64},
        ],
        "hardware-address": "aa:00:00:00:00:01",
    },
    {"name": "ens4", "hardware-address": "aa:00:00:00:00:02"},
]


def addressed(**changes: Any) -> dict[str, Any]:
    return {"name": "eth0", "ip-addresses": [{"ip-address": "192.0.2.1"}]} | changes


def test_addresses_by_which_a_guest_is_reached_are_told() -> None:
    assert parse_interfaces(RECORDED) == (
        Interface(name="ens3", mac="aa:00:00:00:00:01", addresses=("192.0.2.7", "2001:db8::7")),
    )


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "192.0.2.1\n", "\x1b[2J", "::%eth0"])
def test_what_is_no_address_is_left_out(text: str) -> None:
    both = [{"ip-address": text}, {"ip-address": "192.0.2.9"}]
    (told,) = parse_interfaces([addressed(**{"ip-addresses": both})])
    assert told.addresses == ("192.0.2.9",)


def test_a_mac_that_is_none_is_left_out() -> None:
    (told,) = parse_interfaces([addressed(**{"hardware-address": "\x1b[2J"})])
    assert told.mac == ""


def test_a_name_tells_no_terminal_what_to_do() -> None:
    (told,) = parse_interfaces([addressed(name="\x1b[2Jeth0")])
    assert told.name == "\\u001b[2Jeth0"


def test_a_guest_that_has_thousands_tells_of_a_few() -> None:
    many = [{"ip-address": f"10.0.{a}.{b}"} for a in range(4) for b in range(250)]
    told = parse_interfaces([addressed(**{"ip-addresses": many}, name="e" * 5000)] * 500)
    assert len(told) == MOST_INTERFACES
    assert {len(each.addresses) for each in told} == {MOST_ADDRESSES}
    assert len(to_json(told)) < 6000


@pytest.mark.parametrize(
    "answer", [None, 7, "eth0", {}, ["eth0"], [{"name": 7}], [addressed(**{"ip-addresses": 1})]]
)
def test_what_is_no_list_of_interfaces_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidRequest):
        parse_interfaces(answer)


@given(
    name=st.text(),
    mac=st.text() | st.just("AA:00:00:00:00:01"),
    addresses=st.lists(st.text() | st.ip_addresses().map(str), max_size=3),
)
def test_whatever_a_guest_says_its_node_can_be_read(
    name: str, mac: str, addresses: list[str]
) -> None:
    said = {
        "name": name,
        "hardware-address": mac,
        "ip-addresses": [{"ip-address": each} for each in addresses],
    }
    told = parse_interfaces([said])
    assert from_json(to_json(told), Interfaces, what="it") == told
