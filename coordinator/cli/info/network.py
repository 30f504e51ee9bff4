"""``gnt-network info``: all about networks."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.cli.info.shown import identity, show_some

MAPPED = 64  # addresses in a line of the map of a network
MOST_MAPPED = 1024  # in all

_FIELDS = (
    "name", "uuid", "serial_no", "ctime", "mtime", "network", "gateway", "network6", "gateway6",
    "mac_prefix", "free_count", "reserved_count", "map", "external_reservations", "group_list",
    "inst_list", "tags",
)  # fmt: skip


def network_info(command: str, words: Sequence[str]) -> int:
    """``gnt-network info``."""
    return show_some(command, words, "network", "networks", _FIELDS, describe_network)


def describe_network(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one network."""
    return {
        "Network name": told["name"],
        **identity(told),
        "Subnet": told["network"],
        "Gateway": told["gateway"],
        "IPv6 subnet": told["network6"],
        "IPv6 gateway": told["gateway6"],
        "MAC prefix": told["mac_prefix"],
        "Free addresses": told["free_count"],
        "Taken addresses": told["reserved_count"],
        "Usage map": _rows_of(told["map"]),
        "Reserved addresses": told["external_reservations"],
        "Node groups": {
            name: f"mode {mode}, link {link}" + (f", vlan {vlan}" if vlan else "")
            for name, mode, link, vlan in told["group_list"]
        },
        "Instances": told["inst_list"],
        "Tags": told["tags"],
    }


def _rows_of(taken: str) -> dict[str, str]:
    """Cut the map of a network into lines, each called after the first address in it."""
    starts = range(0, min(len(taken), MOST_MAPPED), MAPPED)
    return {str(start): taken[start : start + MAPPED] for start in starts}
