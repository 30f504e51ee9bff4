"""Tell the neighbours on a wire that an address is here now.

They would go on sending to its former holder for as long as they remember it: by ARP (RFC 5227,
3: an announcement), or for IPv6 by an unsolicited neighbour advertisement (RFC 4861, 7.2.6).
"""

import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

ARP, IPV6 = 0x0806, 0x86DD  # ethertypes
REQUEST, REPLY = 1, 2
ADVERTISEMENT, OVERRIDE = 136, 0x20000000
TARGET_LINK_ADDRESS = 2
HOP_LIMIT = 255

_BROADCAST = b"\xff" * 6
_ALL_NODES_MAC = bytes.fromhex("333300000001")
_ALL_NODES = IPv6Address("ff02::1").packed


def announce(ip: str, device: str) -> None:
    """Send what says so out of a device; blocks for no time worth mentioning.

    Raises:
        OSError: it takes no frames, as when it is down.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((device, 0))
        for frame in frames(ip, wire.getsockname()[4]):
            wire.send(frame)


def frames(ip: str, mac: bytes) -> tuple[bytes, ...]:
    """Return the Ethernet frames; some listen to questions only, some to answers only.

    Args:
        ip: the address.
        mac: of the device that has it; one that has none, as the loopback device, tells nobody.
    """
    if len(mac) != len(_BROADCAST):
        return ()
    address = ip_address(ip)
    if isinstance(address, IPv4Address):
        return tuple(_arp(operation, mac, address.packed) for operation in (REQUEST, REPLY))
    return (_advertisement(mac, address.packed),)


def _arp(operation: int, mac: bytes, ip: bytes) -> bytes:
    head = struct.pack("!6s6sH", _BROADCAST, mac, ARP)
    asked = _BROADCAST if operation == REPLY else bytes(6)
    return head + struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, mac, ip, asked, ip)


def _advertisement(mac: bytes, ip: bytes) -> bytes:
    option = struct.pack("!BB6s", TARGET_LINK_ADDRESS, 1, mac)
    body = struct.pack("!I16s", OVERRIDE, ip) + option
    length = 4 + len(body)
    pseudo = ip + _ALL_NODES + struct.pack("!II", length, socket.IPPROTO_ICMPV6)
    head = struct.pack("!BBH", ADVERTISEMENT, 0, 0)
    sum_ = checksum(pseudo + head + body)
    head = struct.pack("!BBH", ADVERTISEMENT, 0, sum_)
    packet = struct.pack("!IHBB", 6 << 28, length, socket.IPPROTO_ICMPV6, HOP_LIMIT)
    ethernet = struct.pack("!6s6sH", _ALL_NODES_MAC, mac, IPV6)
    return ethernet + packet + ip + _ALL_NODES + head + body


def checksum(data: bytes) -> int:
    """Return the internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
