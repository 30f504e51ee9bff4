"""How a tap is called and labelled, and which nics make sense."""

import ipaddress
import re

from common.errors import InvalidRequest
from common.names import InstanceId, NicId, is_uuid
from common.noderpc.network import NicSpec
from common.vlans import parse_vlans

PREFIX = "gnt"
_LONGEST = 15  # IFNAMSIZ less its closing zero
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_ALIAS = re.compile(r"gantry nic=(?P<nic>[0-9a-f-]{36}) instance=(?P<instance>[0-9a-f-]{36})")


def tap_name(nic: NicId) -> str:
    """Derive the name of a nic's tap from its UUID: 44 of its bits, in 14 characters."""
    return PREFIX + nic.replace("-", "")[: _LONGEST - 1 - len(PREFIX)]


def alias(nic: NicId, instance: InstanceId) -> str:
    """Return the label by which a tap is found again."""
    return f"gantry nic={nic} instance={instance}"


def read_alias(text: str | None) -> tuple[NicId, InstanceId] | None:
    """Read what ``alias`` wrote; None if it is something else."""
    match = _ALIAS.fullmatch(text or "")
    return (NicId(match["nic"]), InstanceId(match["instance"])) if match else None


def host_mac(random: str) -> str:
    """Return the address for the host's end of a guest's card, from one that the kernel chose.

    High, since a bridge takes the lowest address among its ports for itself, and would change
    it whenever a guest with a lower one comes or goes. By chance, and not from the guest's: a guest
    that moves leaves a port behind for a moment, and two bridges with one address lose each other.
    """
    return "fe" + random[2:]


def host_route(nic: NicSpec) -> str:
    """Return a routed nic's address as a network of one: ``192.0.2.7/32``.

    Raises:
        InvalidRequest: it has no address, or it is none.
    """
    try:
        return str(ipaddress.ip_network(nic.ip))
    except ValueError as error:
        raise InvalidRequest(
            f"A routed nic needs an IP address, and others may have one; {nic.ip!r} is none.",
            nic=nic.id,
        ) from error


def route_table(nic: NicSpec) -> int:
    """Return the number of the routing table that a routed nic's link names; 254 is main.

    Raises:
        InvalidRequest: it is no number.
    """
    if nic.link in ("", "main"):
        return 254
    if not (nic.link.isascii() and nic.link.isdigit() and 0 < int(nic.link) < 1 << 32):
        raise InvalidRequest(
            f"The link of a routed nic is the number of a routing table or “main”, "
            f"not {nic.link!r}.",
            nic=nic.id,
        )
    return int(nic.link)


def check_nic(nic: NicSpec) -> None:
    """Check what can be told without looking at the node.

    Raises:
        InvalidRequest: it makes no sense.
    """
    if not (is_uuid(nic.id) and is_uuid(nic.instance)):
        raise InvalidRequest("Nic and instance are told apart by UUIDs.", nic=nic.id)
    if not _MAC.fullmatch(nic.mac):
        raise InvalidRequest(f"{nic.mac!r} is no MAC address like aa:00:00:12:34:56.", nic=nic.id)
    if nic.ip:
        host_route(nic)
    match nic.mode:
        case "bridged" | "openvswitch":
            try:
                parse_vlans(nic.vlan)
            except ValueError as error:
                raise InvalidRequest(f"A nic makes no sense: {error}.", nic=nic.id) from error
        case "routed":
            host_route(nic)
            route_table(nic)
        case _:
            raise InvalidRequest(
                f"A nic is bridged, routed or openvswitch, not {nic.mode!r}.", nic=nic.id
            )
