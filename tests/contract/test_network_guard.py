"""What a guest can send that pretends to be somebody else: nothing, on a real kernel."""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from common.execute import ENVIRONMENT, execute
from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec
from noded.network.linux import LinuxNetwork
from noded.network.netlink import open_netlink
from noded.network.tuntap import open_tap
from tests.support.namespace import in_new_network
from tests.support.openvswitch import OpenVSwitch, with_switches

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
NIC = NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a")
MAC, OTHER_MAC = "aa:00:00:12:34:56", "aa:00:00:00:00:99"
IP, OTHER_IP = "192.0.2.7", "192.0.2.8"
IP6, OTHER_IP6 = "2001:db8::7", "2001:db8::8"
LINK_LOCAL, NOBODY6 = "fe80::1", "::"

ARP, RARP, IPV4, IPV6, VLAN = 0x0806, 0x8035, 0x0800, 0x86DD, 0x8100
EXPERIMENT = 0x88B5
UDP, ICMPV6 = 17, 58
SOLICIT, ADVERT, ROUTER = 135, 136, 134
VNET_HEADER = bytes(10)  # before each frame: nothing is left to the host
ALL_PROTOCOLS = 3
PATIENCE_S = 20.0


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def frame(payload: bytes, kind: int, source: str = MAC) -> bytes:
    return (b"\xff" * 6 + mac(source) + struct.pack("!H", kind) + payload).ljust(60, b"\0")


def arp(ip: str, sender: str = MAC, kind: int = ARP, *, about: int = 0) -> bytes:
    """Say who has ``ip``."""
    said = struct.pack("!HHBBH", 1, IPV4, 6, 4, 2) + mac(sender) + socket.inet_aton(ip)
    return frame(said + bytes(6) + about.to_bytes(4, "big"), kind)


def ipv4(source: str, *, ports: tuple[int, int] = (7, 7)) -> bytes:
    body = struct.pack("!HHHH", *ports, 8, 0)
    addresses = socket.inet_aton(source) + b"\xff" * 4
    words = (0x4500, 20 + len(body), 0, 0, 64 << 8 | UDP, *struct.unpack("!4H", addresses))
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    header = struct.pack("!6H", *words[:5], 0xFFFF - total)  # some bridges look at the checksum
    return frame(header + addresses + body, IPV4)


def ipv6(source: str, *, icmp: int = 0, about: str = NOBODY6) -> bytes:
    body = struct.pack("!BBHI", icmp, 0, 0, 0) + IPv6Address(about).packed
    header = struct.pack("!IHBB", 0x60000000, len(body), ICMPV6 if icmp else UDP, 255)
    group = IPv6Address("ff02::1").packed
    return frame(header + IPv6Address(source).packed + group + body, IPV6)


def end_in_arp(number: int) -> bytes:
    return arp(IP, about=1000 + number)


def end_in_ipv6(number: int) -> bytes:
    return ipv6(IP6, about=str(IPv6Address(1000 + number)))


GOOD = frame(b"anything", EXPERIMENT)
OTHERS = {
    "frame of another": frame(b"x", EXPERIMENT, OTHER_MAC),
    "tagged frame of another": frame(b"\0\1\x08\0", VLAN, OTHER_MAC),
    "arp of another card": arp(IP, OTHER_MAC),
}
OTHERS_IPV4 = OTHERS | {
    "arp of another address": arp(OTHER_IP),
    "packet of another address": ipv4(OTHER_IP),
    "packet of nobody": ipv4("0.0.0.0"),
    "packet of another kind": ipv6(OTHER_IP6),
    "tagged frame": frame(b"\0\1\x08\0", VLAN),
}
OWN_IPV4 = {
    "arp": arp(IP),
    "is it free": arp("0.0.0.0"),
    "packet": ipv4(IP),
    "dhcp": ipv4("0.0.0.0", ports=(68, 67)),
    "QEMU's word that it has moved": arp("0.0.0.0", kind=RARP),
}
OTHERS_IPV6 = OTHERS | {
    "packet of another address": ipv6(OTHER_IP6),
    "another's address is mine": ipv6(IP6, icmp=ADVERT, about=OTHER_IP6),
    "from a link-local one, too": ipv6(LINK_LOCAL, icmp=ADVERT, about=OTHER_IP6),
    "I am the router": ipv6(LINK_LOCAL, icmp=ROUTER),
    "packet of nobody": ipv6(NOBODY6),
    "packet of another kind": ipv4(IP),
}
OWN_IPV6 = {
    "packet": ipv6(IP6),
    "my address is mine": ipv6(IP6, icmp=ADVERT, about=IP6),
    "so is the link-local one": ipv6(LINK_LOCAL, icmp=ADVERT, about=LINK_LOCAL),
    "is it free": ipv6(NOBODY6, icmp=SOLICIT, about=IP6),
}


@pytest.mark.parametrize(
    ("ip", "guarded", "pass_", "stop"),
    [
        ("", True, OWN_IPV4 | OWN_IPV6 | {"anything": GOOD}, OTHERS),
        (IP, True, OWN_IPV4, OTHERS_IPV4),
        (IP6, True, OWN_IPV6, OTHERS_IPV6),
        (IP, False, OWN_IPV4 | OTHERS_IPV4, {}),
    ],
    ids=["any IP", "IPv4", "IPv6", "not guarded"],
)
def test_a_guest_sends_with_its_own_addresses_only(
    ip: str, guarded: bool, pass_: dict[str, bytes], stop: dict[str, bytes]
) -> None:
    nic = NicSpec(
        id=NIC, instance=WEB1, mac=MAC, ip=ip, mode="bridged", link="br0", guarded=guarded
    )

    async def scenario() -> None:
        network = await prepared()
        (tap,) = await network.ensure_taps((nic,))
        await network.ensure_taps((nic,))  # as a repeated order
        end = end_in_ipv6 if ip == IP6 else end_in_arp
        passed = await asyncio.to_thread(send, tap, end, {**stop, **pass_})
        assert passed == set(pass_)

    in_new_network(scenario)


def test_the_same_holds_in_a_switch_of_the_kernel() -> None:
    nic = NicSpec(id=NIC, instance=WEB1, mac=MAC, ip=IP, mode="openvswitch", link="ovs0")

    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        await network.prepare()
        if network.unguarded:
            pytest.skip(f"NOT TRIED WHETHER GUESTS CAN PRETEND TO BE OTHERS: {network.unguarded}")
        await asyncio.to_thread(lay_wire)
        await switch.tell("add-port", "ovs0", "veth0")
        (tap,) = await network.ensure_taps((nic,))
        passed = await asyncio.to_thread(send_until, tap, OTHERS_IPV4, OWN_IPV4)
        assert passed == set(OWN_IPV4)

    with_switches("system", scenario)


def test_rules_go_with_their_tap_and_come_anew() -> None:
    nic = NicSpec(id=NIC, instance=WEB1, mac=MAC, mode="bridged", link="br0")

    async def scenario() -> None:
        network = await prepared()
        (tap,) = await network.ensure_taps((nic,))
        assert f"gantry_{tap}" in await tables()
        await network.remove_taps((NIC,))
        assert await tables() == ""
        await network.remove_taps((NIC,))
        await network.ensure_taps((nic,))
        assert f"gantry_{tap}" in await tables()

    in_new_network(scenario)


def test_a_node_that_cannot_guard_says_why_and_plugs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nft = tmp_path / "nft"
    nft.write_text("#!/bin/sh\necho 'Operation not supported' >&2; exit 1\n")
    nft.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{tmp_path}:{ENVIRONMENT['PATH']}")
    nic = NicSpec(id=NIC, instance=WEB1, mac=MAC, mode="bridged", link="br0")

    async def scenario() -> None:
        network = LinuxNetwork()
        await network.prepare()
        assert "Operation not supported" in network.unguarded
        await asyncio.to_thread(furnish)
        await network.ensure_taps((nic,))
        assert len(await network.taps()) == 1

    in_new_network(scenario)


async def prepared() -> LinuxNetwork:
    """Return the driver, with a bridge, and a wire on which all is heard."""
    network = LinuxNetwork()
    await network.prepare()
    if network.unguarded:
        pytest.skip(f"NOT TRIED WHETHER GUESTS CAN PRETEND TO BE OTHERS: {network.unguarded}")
    await asyncio.to_thread(furnish)
    return network


def lay_wire() -> None:
    """Make veth0, for a switch, and its other end veth1, at which is listened."""
    with open_netlink("furnish") as netlink:
        links = netlink._socket
        links.link("add", ifname="veth0", kind="veth", peer={"ifname": "veth1"})
        for name in ("veth0", "veth1"):
            links.link("set", index=links.link_lookup(ifname=name)[0], state="up")


def furnish() -> None:
    lay_wire()
    with open_netlink("furnish") as netlink:
        links = netlink._socket
        links.link("add", ifname="br0", kind="bridge", br_mcast_snooping=0)
        links.link("set", index=links.link_lookup(ifname="br0")[0], state="up")
        bridge, port = (links.link_lookup(ifname=name)[0] for name in ("br0", "veth0"))
        links.link("set", index=port, master=bridge)


async def tables() -> str:
    finished = await execute("nft", "list", "tables", timeout_s=10)
    return finished.stdout.decode()


def send(tap: str, end: Callable[[int], bytes], frames: dict[str, bytes]) -> set[str]:
    """Send frames as the guest behind ``tap``; return the names of those that arrived.

    After each, one of ``end`` is sent, which goes through: when it arrives, whatever was sent
    before has arrived, or never will.
    """
    guest = open_tap(tap)
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    arrived = set()
    with heard, os.fdopen(guest, "wb", buffering=0) as card:
        heard.bind(("veth1", 0))
        heard.settimeout(0.05)
        for _ in range(int(PATIENCE_S / 0.05)):  # the bridge lets a new port in after a moment
            card.write(VNET_HEADER + end(0))
            with suppress(TimeoutError):
                while not is_same(heard.recv(2048), end(0)):
                    pass
                break
        heard.settimeout(PATIENCE_S)
        for number, (name, each) in enumerate(frames.items(), start=1):
            card.write(VNET_HEADER + each)
            card.write(VNET_HEADER + end(number))
            while not is_same(got := heard.recv(2048), end(number)):
                if is_same(got, each):
                    arrived.add(name)
    return arrived


def send_until(tap: str, stop: dict[str, bytes], pass_: dict[str, bytes]) -> set[str]:
    """Send what is to be stopped, then the rest until all of it has arrived; return what has.

    For switches: frames of a kind that they have not met yet are overtaken by others there, but
    not by those that they have not met either.
    """
    arrived = set[str]()
    guest = open_tap(tap)
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    with heard, os.fdopen(guest, "wb", buffering=0) as card:
        heard.bind(("veth1", 0))
        heard.settimeout(0.2)
        for _ in range(int(PATIENCE_S / 0.2)):
            for each in (*stop.values(), *pass_.values()):
                card.write(VNET_HEADER + each)
            with suppress(TimeoutError):
                while got := heard.recv(2048):
                    arrived |= {
                        name for name, each in {**stop, **pass_}.items() if is_same(got, each)
                    }
            if arrived >= set(pass_):
                break
    return arrived


def is_same(got: bytes, sent: bytes) -> bool:
    """Compare frames; on its way one may lose what pads it, and its tag."""
    if int.from_bytes(sent[12:14], "big") == VLAN:
        sent = sent[:12] + sent[16:]
    return sent.startswith(got) or got.startswith(sent)
