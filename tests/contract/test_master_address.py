"""What every network driver promises of the address that a master has for a while."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.master_address import MasterAddress
from noded.network.announce import ADVERTISEMENT, checksum
from noded.network.fake import FakeNetwork
from noded.network.interface import NetworkDriver
from noded.network.linux import LinuxNetwork
from noded.network.netlink import Address, open_netlink
from tests.support.namespace import in_new_network

Run = Callable[[Callable[[NetworkDriver], Awaitable[None]]], None]

OWN = "192.0.2.7"  # of veth1, for good
FOUR = MasterAddress(ip="192.0.2.100", prefix=24, device="veth0")
SIX = MasterAddress(ip="2001:db8::100", prefix=128, device="veth0")
LONG_S = 600
EVERYTHING = 0x0003  # ETH_P_ALL


def run_fake(scenario: Callable[[NetworkDriver], Awaitable[None]]) -> None:
    async def main() -> None:
        network = FakeNetwork("br0")
        network.devices |= {"veth0", "veth1"}
        network.own[OWN] = "veth1"
        await scenario(network)

    asyncio.run(main())


def run_real(scenario: Callable[[NetworkDriver], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.to_thread(furnish)
        await scenario(LinuxNetwork())

    in_new_network(main)


def furnish() -> None:
    with open_netlink("test") as netlink:
        netlink._socket.link("add", ifname="br0", kind="bridge")
        netlink._socket.link("add", ifname="veth0", kind="veth", peer={"ifname": "veth1"})
        numbers = {}
        for name in ("veth0", "veth1", "br0"):
            link = netlink.find(name)
            assert link is not None
            netlink.set(link, state="up")
            numbers[name] = link.number
        for_good = Address(ip=OWN, prefix=24, link=numbers["veth1"], seconds=2**32 - 1)
        netlink.give_address(for_good)


@pytest.fixture(params=[run_fake, run_real], ids=["fake", "linux"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


@pytest.mark.parametrize("address", [FOUR, SIX])
def test_an_address_is_held_until_it_is_let_go(run: Run, address: MasterAddress) -> None:
    async def scenario(network: NetworkDriver) -> None:
        for _ in range(2):
            await network.hold(address, LONG_S)
            assert await network.holds(address.ip) == "veth0"
        await network.hold(replace(address, device="br0"), LONG_S)
        assert await network.holds(address.ip) == "br0"
        for _ in range(2):
            await network.let_go(address.ip)
            assert await network.holds(address.ip) == ""

    run(scenario)


@pytest.mark.parametrize("address", [FOUR, SIX])
def test_an_address_is_gone_when_its_time_is_over(run: Run, address: MasterAddress) -> None:
    async def scenario(network: NetworkDriver) -> None:
        await network.hold(address, LONG_S)
        await network.hold(address, 1)  # counts from now
        async with asyncio.timeout(20):
            while await network.holds(address.ip):  # noqa: ASYNC110 -- the kernel tells nobody
                await asyncio.sleep(0.05)

    run(scenario)


def test_an_address_on_a_device_that_is_not_there_is_refused(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        with pytest.raises(NodeFailure, match=r"no network device eth9 .*--master-netdev"):
            await network.hold(replace(FOUR, device="eth9"), LONG_S)
        assert await network.holds(FOUR.ip) == ""

    run(scenario)


def test_an_address_of_the_node_itself_is_neither_held_nor_let_go(run: Run) -> None:
    async def scenario(network: NetworkDriver) -> None:
        with pytest.raises(Conflict, match="is an address of this node itself"):
            await network.hold(replace(FOUR, ip=OWN), LONG_S)
        await network.let_go(OWN)
        assert await network.holds(OWN) == "veth1"

    run(scenario)


@pytest.mark.parametrize(("address", "times"), [(FOUR, 2), (SIX, 1)])
def test_neighbours_hear_of_an_address_when_it_comes_and_not_when_it_is_renewed(
    address: MasterAddress, times: int
) -> None:
    async def scenario(network: NetworkDriver) -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING)) as wire:
            wire.bind(("veth1", EVERYTHING))
            wire.settimeout(0)
            for _ in range(2):
                await network.hold(address, LONG_S)
            heard = []
            with suppress(BlockingIOError):
                while True:
                    heard += announced(wire.recv(2048), wire.getsockname()[4])
            assert heard == [address.ip] * times

    run_real(scenario)


def announced(frame: bytes, own: bytes) -> list[str]:
    """Read an announcement as neighbours do: it is of whoever sent the frame."""
    kind, sender = frame[12:14].hex(), frame[6:12]
    if kind == "0806" and sender != own and frame[28:32] == frame[38:42]:
        assert frame[22:28] == sender
        return [str(ip_address(frame[28:32]))]
    if kind == "86dd" and sender != own and frame[54] == ADVERTISEMENT:
        assert frame[-6:] == sender
        pseudo = frame[22:54] + struct.pack("!II", len(frame) - 54, socket.IPPROTO_ICMPV6)
        assert checksum(pseudo + frame[54:]) == 0
        return [str(ip_address(frame[62:78]))]
    return []
