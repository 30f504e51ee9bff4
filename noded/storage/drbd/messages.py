"""Messages to and from DRBD's module: values in, bytes out, and back.

Source: linux/netlink.h, linux/genetlink.h and linux/drbd_genl.h of Linux 6.1, for DRBD 8.4; that
of DRBD 9.2 numbers what is here alike.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from noded.storage.drbd.module import Connection

CONTEXT, DISK, NET, STATE, REPLY = 2, 3, 5, 8, 1  # attributes, each made of others
NO_MINOR = 0xFFFFFFFF

_TYPE = 0x3FFF  # the two highest bits of a type are flags
_NESTED = 0x8000  # one of them, without which the module takes nothing that is made of others
_IPV4, _IPV6 = 2, 10

Attributes = Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Message:
    """What the module says of one device; ``parts`` are by the numbers above."""

    minor: int
    code: int
    parts: Mapping[int, Attributes]


def connection(connection: Connection, options: Attributes) -> bytes:
    """Return what tells of a connection, its options by their numbers in ``net_conf``."""
    context = {2: as_text(connection.resource), **_ends(connection)}
    return nest(CONTEXT, context) + nest(NET, options)


def ends(connection: Connection) -> bytes:
    """Return what tells which connection is meant, of those that there are.

    The module refuses to be told the resource as well.
    """
    return nest(CONTEXT, _ends(connection))


def _ends(connection: Connection) -> Attributes:
    own, peer = (pack_address(e.address, e.port) for e in (connection.own, connection.peer))
    return {3: own, 4: peer}


def named(resource: str) -> bytes:
    """Return what tells which resource is meant."""
    return nest(CONTEXT, {2: as_text(resource)})


def volume(resource: str) -> bytes:
    """Return what tells that the only volume of a resource is meant."""
    return nest(CONTEXT, {1: as_number(0), 2: as_text(resource)})


def request(command: int, minor: int, parts: bytes, *, version: int) -> bytes:
    """Return a request, from its generic header on, in a version of the module's language."""
    return struct.pack("=BBHII", command, version, 0, minor, 0) + parts


def nest(number: int, attributes: Attributes) -> bytes:
    """Return an attribute that is made of others."""
    return pack(number | _NESTED, pack_all(attributes))


def as_text(value: str) -> bytes:
    return value.encode() + b"\0"


def as_number(value: int) -> bytes:
    return struct.pack("=I", value)


def as_flag(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def pack(number: int, value: bytes) -> bytes:
    """Return an attribute as it is sent."""
    return struct.pack("=HH", len(value) + 4, number) + value + b"\0" * (-len(value) % 4)


def pack_all(attributes: Attributes) -> bytes:
    return b"".join(pack(number, value) for number, value in attributes.items())


def unpack_all(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each attribute in ``data``."""
    at = 0
    while at + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield number & _TYPE, data[at + 4 : at + length]
        at += length + -length % 4


def pack_address(address: str, port: int) -> bytes:
    """Return a ``sockaddr_in`` or ``sockaddr_in6``."""
    packed = ip_address(address)
    if isinstance(packed, IPv6Address):
        return struct.pack("=H", _IPV6) + struct.pack("!HI", port, 0) + packed.packed + b"\0" * 4
    return struct.pack("=H", _IPV4) + struct.pack("!H", port) + packed.packed + b"\0" * 8


def read_text(attributes: Attributes | None, number: int) -> str:
    return (attributes or {}).get(number, b"").rstrip(b"\0").decode(errors="replace")


def read_number(attributes: Attributes | None, number: int) -> int:
    return int.from_bytes((attributes or {}).get(number, b""), "little")


def unpack_address(data: bytes) -> tuple[str, int]:
    (family,) = struct.unpack_from("=H", data)
    (port,) = struct.unpack_from("!H", data, 2)
    return str(IPv6Address(data[8:24]) if family == _IPV6 else IPv4Address(data[4:8])), port


def read_message(payload: bytes) -> Message:
    """Read one message of the module's, from its generic header on."""
    minor, code = struct.unpack_from("=Ii", payload, 4)
    parts = {number: dict(unpack_all(value)) for number, value in unpack_all(payload[12:])}
    return Message(minor, code, parts)


def split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of each message in what was received at once."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        yield kind, data[at + 16 : at + length]
        at += length + -length % 4
