"""What the agent in a guest tells of the guest, which can be anything.

A guest is nobody's friend: what it says is bounded, so that the answer of its node stays readable
however much it says.
"""

from typing import Annotated, Any

from msgspec import Meta

from common.messages import Report

MOST_INTERFACES = 8
MOST_ADDRESSES = 16  # of one interface

Name = Annotated[str, Meta(max_length=32)]
Mac = Annotated[str, Meta(pattern=r"^([0-9a-f]{2}(:[0-9a-f]{2}){5})?$")]
Address = Annotated[str, Meta(pattern=r"^[0-9a-f:.]{2,45}$")]


class Interface(Report):
    """A network interface as a guest calls it, and the addresses that it says it has there."""

    name: Name
    mac: Mac = ""
    addresses: Annotated[tuple[Address, ...], Meta(max_length=MOST_ADDRESSES)] = ()


Interfaces = Annotated[tuple[Interface, ...], Meta(max_length=MOST_INTERFACES)]


def in_lists(interfaces: Interfaces | None) -> list[dict[str, Any]] | None:
    """Return interfaces as they are shown; None if nothing was told."""
    if interfaces is None:
        return None
    return [
        {"name": each.name, "mac": each.mac, "addresses": list(each.addresses)}
        for each in interfaces
    ]
