"""The kernel's links, through rtnetlink.

``pyroute2`` is imported at its first use: a node without guests does without its 13 MiB.
"""

import asyncio
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from common.errors import NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network device as it is."""

    number: int
    name: str
    kind: str  # "bridge", "tun" (which taps are, too), …
    alias: str
    address: str  # MAC
    mtu: int
    filters_vlans: bool  # of a bridge
    bridge: int  # number of the one it is plugged into, or 0


FOR_GOOD = 2**32 - 1  # seconds, to the kernel
_NO_DETECTION = 0x02  # IFA_F_NODAD: of use at once; the coordinator sees that nobody else has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An IP address on a link, for some seconds."""

    ip: str
    prefix: int
    link: int
    seconds: int

    @property
    def is_for_good(self) -> bool:
        return self.seconds == FOR_GOOD


class Netlink:
    """The links of a network namespace; every call blocks.

    Raises, from every method:
        Exception: what the kernel refused; ``open_netlink`` makes a sentence of it.
    """

    def __init__(self, socket: Any, refused: type[Exception]) -> None:
        self._socket = socket
        self._refused = refused

    def all(self) -> list[Link]:
        return [_read(message) for message in self._socket.link("dump")]

    def find(self, name: str) -> Link | None:
        """Return the link of that name, or None if there is none or it can be no name."""
        try:
            return _read(self._socket.link("get", ifname=name)[0])
        except self._refused as error:
            if _number_of(error) in (errno.ENODEV, errno.EINVAL, errno.ERANGE):
                return None
            raise

    def set(self, link: Link, **properties: str | int) -> None:
        """Change a link: ``state``, ``mtu``, ``address``, ``ifalias``, ``master`` (0: none)."""
        self._socket.link("set", index=link.number, **properties)

    def delete(self, link: Link) -> None:
        """Delete a link; fine if somebody else was quicker."""
        try:
            self._socket.link("del", index=link.number)
        except self._refused as error:
            if _number_of(error) != errno.ENODEV:
                raise

    def addresses(self) -> list[Address]:
        return [_read_address(message) for message in self._socket.addr("dump")]

    def give_address(self, address: Address) -> None:
        """Have an address on its link; one that is there gets its seconds anew."""
        self._socket.addr(
            "replace",
            index=address.link,
            address=address.ip,
            prefixlen=address.prefix,
            preferred_lft=address.seconds,
            valid_lft=address.seconds,
            **({"flags": _NO_DETECTION} if ":" in address.ip else {}),
        )

    def remove_address(self, address: Address) -> None:
        """Take an address away; fine if somebody else was quicker, or its time is over."""
        try:
            self._socket.addr(
                "del", index=address.link, address=address.ip, prefixlen=address.prefix
            )
        except self._refused as error:
            if _number_of(error) not in (errno.EADDRNOTAVAIL, errno.ENODEV):
                raise

    def route(self, destination: str, link: Link, table: int) -> None:
        """Send what is for ``destination``, a network in CIDR notation, to ``link``."""
        self._socket.route("replace", dst=destination, oif=link.number, table=table)


@contextmanager
def open_netlink(doing: str) -> Iterator[Netlink]:
    """Open a socket to the kernel, for use in this thread, which runs no event loop.

    Args:
        doing: what for, to complete "Cannot …".

    Raises:
        NodeFailure: the kernel refused something within.
    """
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    # A plain event loop: uvloop, which noded runs on, takes no netlink sockets (seen with
    # pyroute2 0.9.7 and uvloop 0.23).
    loop = asyncio.SelectorEventLoop()
    try:
        with IPRoute(use_event_loop=loop) as socket:
            yield Netlink(socket, NetlinkError)
    except NetlinkError as error:
        raise NodeFailure(f"Cannot {doing}: {error.args[-1]}.") from error
    except OSError as error:
        raise NodeFailure(f"Cannot {doing}: {error.strerror or error}.") from error
    finally:
        loop.run_until_complete(asyncio.sleep(0))  # the socket closes one step later
        loop.close()


def _read(message: Any) -> Link:
    return Link(
        number=message["index"],
        name=message.get("ifname") or "",
        kind=message.get(("linkinfo", "kind")) or "",
        alias=message.get("ifalias") or "",
        address=message.get("address") or "",
        mtu=message.get("mtu") or 0,
        filters_vlans=bool(message.get(("linkinfo", "data", "br_vlan_filtering"))),
        bridge=message.get("master") or 0,
    )


def _read_address(message: Any) -> Address:
    lifetime = message.get("cacheinfo") or {}
    return Address(
        ip=message.get("local") or message.get("address"),
        prefix=message["prefixlen"],
        link=message["index"],
        seconds=lifetime.get("ifa_valid", FOR_GOOD),
    )


def _number_of(error: Exception) -> int:
    number: int = getattr(error, "code", 0)
    return number
