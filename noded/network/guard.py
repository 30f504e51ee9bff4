"""Guests send with their own addresses only: nftables' rules at the node's end of their wires.

Each tap has a table of its own, so that rules come and go as a whole with their tap, and whatever
else uses nftables on the node is left alone. Source: nft(8) of nftables 1.0.6, family netdev.
"""

import logging
from collections.abc import Iterable
from ipaddress import IPv4Network, ip_network

from common.noderpc.network import NicSpec
from noded.system.execute import CommandFailed, execute

PATIENCE_S = 10.0

log = logging.getLogger(__name__)


class Guard:
    """Sets the rules of taps.

    A node whose kernel or programs cannot do it runs guests all the same, which then can pretend
    to be each other.
    """

    def __init__(self) -> None:
        self.problem = ""  # why guests go unguarded, as a clause; empty if they do not

    async def prepare(self) -> None:
        """Find out whether it works here, and change nothing."""
        await self._run(table("lo", "aa:00:00:00:00:00", "192.0.2.1"), "--check")

    async def protect(self, taps: Iterable[tuple[str, NicSpec]]) -> None:
        """Have each tap, which exists, take its nic's addresses only, or any if so wanted."""
        await self._run(
            "".join(
                table(tap, nic.mac, nic.ip) if nic.guarded else no_table(tap) for tap, nic in taps
            )
        )

    async def forget(self, taps: Iterable[str]) -> None:
        """Remove the tables of taps that are gone."""
        await self._run("".join(map(no_table, taps)))

    async def _run(self, text: str, *options: str) -> None:
        if not text:
            return
        before, self.problem = self.problem, ""
        try:
            await execute("nft", *options, "-f", "-", stdin=text.encode(), timeout_s=PATIENCE_S)
        except CommandFailed as error:
            self.problem = " ".join(error.message.split()).rstrip(".")
            if self.problem != before:
                log.warning("Guests can use the addresses of others: %s", error.message)


def table(tap: str, mac: str, ip: str) -> str:
    """Return what puts the rules of a tap in the place of earlier ones.

    Args:
        tap: the device.
        mac: from which everything has to come.
        ip: address or network of the nic; empty if anything may be sent.
    """
    rules = "".join(f"    {rule}\n" for rule in _rules(mac, ip))
    return (
        f"{no_table(tap)}table netdev {_name(tap)} {{\n  chain from_guest {{\n"
        f'    type filter hook ingress device "{tap}" priority 0; policy drop;\n'
        f"{rules}  }}\n}}\n"
    )


def no_table(tap: str) -> str:
    """Return what removes the rules of a tap, if there are any."""
    return f"table netdev {_name(tap)}\ndelete table netdev {_name(tap)}\n"


def _name(tap: str) -> str:
    return f"gantry_{tap}"


def _rules(mac: str, ip: str) -> Iterable[str]:
    yield f"ether saddr != {mac} drop"
    yield f"arp saddr ether != {mac} drop"
    if not ip:
        yield "accept"
        return
    # With this QEMU tells bridges where a guest is that has moved.
    yield "ether type 0x8035 accept"
    network = ip_network(ip)
    if isinstance(network, IPv4Network):
        yield f"arp saddr ip {{ 0.0.0.0, {network} }} accept"  # the former asks whether one is free
        yield f"ip saddr {network} accept"
        yield "ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept"  # asks for its address
        return
    # Whose address is told stands behind the header; link-local ones are everybody's to choose.
    bits = network.prefixlen
    own = int(network.network_address) >> (128 - bits)
    if bits:
        yield f"icmpv6 type nd-neighbor-advert @th,64,{bits} {own:#x} accept"
    yield "icmpv6 type nd-neighbor-advert @th,64,10 0x3fa accept"
    yield "icmpv6 type { nd-neighbor-advert, nd-router-advert, nd-redirect } drop"
    yield f"ip6 saddr {{ {network}, fe80::/10 }} accept"
    asking = "nd-neighbor-solicit, nd-router-solicit, mld-listener-report, mld2-listener-report"
    yield f"ip6 saddr :: icmpv6 type {{ {asking} }} accept"
