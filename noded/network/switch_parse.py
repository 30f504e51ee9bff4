"""What Open vSwitch's database says of a node's switches: text in, values out.

Source: ovs-vswitchd.conf.db(5) and ovs-vsctl(8) of Open vSwitch 3.1, RFC 7047.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import NodeFailure
from common.names import NicId

NIC = "gantry-nic"  # what our ports are labelled with, among their external_ids

TABLES = {  # what has to be listed, in this order
    "bridge": ("name", "datapath_type", "ports"),
    "port": ("_uuid", "name", "tag", "fake_bridge", "external_ids"),
    "open_vswitch": ("other_config",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A switch, or a VLAN of one that has a name of its own."""

    name: str
    bridge: str  # whose ports it has; itself unless it is a VLAN
    vlan: int | None = None  # which of that bridge it is
    passes_filters_by: str = ""  # the setting by which frames do not meet nftables; empty: they do


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """Where a device is plugged in."""

    name: str
    bridge: str
    switch: str  # the same, or that VLAN of it in which it is
    nic: NicId | None  # whose tap it is, if we have plugged it in


@dataclass(frozen=True, slots=True)
class Seen:
    switches: Mapping[str, Switch]
    ports: Mapping[str, Port]


def read_switches(text: str) -> Seen:
    """Read what ``switch_commands.look`` prints.

    Raises:
        NodeFailure: it is something else; carries the first 200 characters.
    """
    try:
        bridges, ports, (settings,) = map(_rows, text.rstrip("\n").split("\n"))
        return _seen(bridges, ports, settings["other_config"])
    except (ValueError, KeyError, TypeError) as error:
        raise NodeFailure(f"Open vSwitch answers in another form: {text[:200]!r}.") from error


def read_problem(text: str) -> str:
    """Read what ``switch_commands.problem`` prints: why a port does not work, or nothing."""
    said = text.strip()
    return "" if said in ("", "[]") else said.strip('"').rstrip(".")


def _rows(line: str) -> list[dict[str, Any]]:
    table = json.loads(line)
    names = table["headings"]
    return [dict(zip(names, map(_value, row), strict=True)) for row in table["data"]]


def _value(value: Any) -> Any:
    match value:
        case ["set", members]:
            return [_value(each) for each in members]
        case ["map", pairs]:
            return dict(pairs)
        case ["uuid", text]:
            return text
        case _:
            return value


def _seen(
    bridges: list[dict[str, Any]], rows: list[dict[str, Any]], settings: dict[str, str]
) -> Seen:
    switches, bridge_of, named = dict[str, Switch](), dict[str, str](), dict[tuple[str, int], str]()
    for each in bridges:
        name, by = each["name"], _passes_by(each["datapath_type"], settings)
        switches[name] = Switch(name=name, bridge=name, passes_filters_by=by)
        bridge_of |= dict.fromkeys(_several(each["ports"]), name)
    rows = [row for row in rows if row["_uuid"] in bridge_of]
    for row in rows:
        if row["fake_bridge"]:
            parent = switches[bridge_of[row["_uuid"]]]
            switches[row["name"]] = Switch(
                name=row["name"],
                bridge=parent.name,
                vlan=row["tag"],
                passes_filters_by=parent.passes_filters_by,
            )
            named[parent.name, row["tag"]] = row["name"]
    ports = {}
    for row in rows:
        bridge, tag = bridge_of[row["_uuid"]], row["tag"]
        ports[row["name"]] = Port(
            name=row["name"],
            bridge=bridge,
            switch=bridge if tag == [] else named.get((bridge, tag), bridge),
            nic=row["external_ids"].get(NIC),
        )
    return Seen(switches, ports)


def _passes_by(datapath: str, settings: dict[str, str]) -> str:
    """Say what has frames reach a switch before nftables could drop them.

    In user space they are read off the devices by packet sockets, and what is offloaded is
    forwarded by tc's filters. Both come first in the kernel (``__netif_receive_skb_core``).
    """
    if datapath not in ("", "system"):
        return f"datapath_type={datapath}"
    return "hw-offload=true" if settings.get("hw-offload") == "true" else ""


def _several(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
