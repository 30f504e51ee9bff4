"""What the agent in a guest answers: JSON in, values out, as far as they make sense.

Source: docs/interop/qemu-ga-ref of QEMU 7.2.
"""

import ipaddress
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from common.messages import Report, from_builtins
from common.noderpc.guest_agent import MOST_ADDRESSES, MOST_INTERFACES, Interface
from common.printable import one_line

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME_LIMIT = 32  # characters


class _Address(Report, rename="kebab"):
    ip_address: str = ""


class _Interface(Report, rename="kebab"):
    name: str = ""
    hardware_address: str = ""
    ip_addresses: tuple[_Address, ...] = ()


def parse_interfaces(answer: Any) -> tuple[Interface, ...]:
    """Read the answer of ``guest-network-get-interfaces``.

    What is no address is left out, and so are the guest's own loopback, addresses that hold on a
    link only, and interfaces without any.

    Raises:
        InvalidRequest: it is something else.
    """
    told = from_builtins(answer, tuple[_Interface, ...], what="the interfaces of a guest")
    return tuple(islice(_interfaces(told), MOST_INTERFACES))


def _interfaces(told: tuple[_Interface, ...]) -> Iterator[Interface]:
    for each in told:
        usable = filter(None, (_read(address.ip_address) for address in each.ip_addresses))
        addresses = dict.fromkeys(islice(usable, MOST_ADDRESSES))
        if addresses:
            mac = each.hardware_address.lower()
            yield Interface(
                name=one_line(each.name[:_NAME_LIMIT])[:_NAME_LIMIT],
                mac=mac if _MAC.fullmatch(mac) else "",
                addresses=tuple(addresses),
            )


def _read(text: str) -> str:
    """Return an address in its usual form; empty for what others cannot reach the guest by."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    unreachable = address.is_loopback or address.is_link_local or address.is_unspecified
    return "" if unreachable else str(address)
