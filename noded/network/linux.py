"""The network of a Linux node: taps in the network namespace that noded runs in."""

import asyncio
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.master_address import MasterAddress
from common.names import NicId
from common.noderpc.network import NicSpec, TapReport
from noded.network import held
from noded.network.guard import Guard
from noded.network.interface import NetworkDriver
from noded.network.naming import (
    PREFIX,
    alias,
    check_nic,
    host_mac,
    host_route,
    read_alias,
    route_table,
    tap_name,
)
from noded.network.netlink import Link, Netlink, open_netlink
from noded.network.switch import Switches
from noded.network.tuntap import make_tap
from noded.system.threads import in_thread

_SETTINGS = Path("/proc/sys/net")


class LinuxNetwork(NetworkDriver):
    def __init__(self, switches: Switches | None = None) -> None:
        self._switches = switches or Switches()
        # So that a tap without a label is one whose making was cut short, not one being made.
        self._changing = asyncio.Lock()
        self._guard = Guard()

    async def prepare(self) -> None:
        await self._guard.prepare()
        if self._switches.may_run():  # else netlink's library stays out of noded's memory
            await self.remove_taps(())  # ports of taps that a power cut has taken away

    @property
    def unguarded(self) -> str:
        return self._guard.problem

    async def check(self, nics: tuple[NicSpec, ...]) -> None:
        await in_thread(_check, nics)
        await self._switches.check(nics)

    async def ensure_taps(self, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        for nic in nics:
            check_nic(nic)
        async with self._changing:
            await self._switches.check(nics)  # without one, there shall be no tap either
            names, leaving = await in_thread(_make_all, nics)
            # Before they are plugged in, so that no guest is ever without.
            await self._guard.protect(zip(names, nics, strict=True))
            await self._switches.unplug(leaving)
            await in_thread(_connect_all, nics)
            for name, nic in zip(names, nics, strict=True):
                if nic.mode == "openvswitch":
                    await self._switches.plug(name, nic)
                elif nic.vlan:
                    await self._switches.tag(name, nic)
            return names

    async def remove_taps(self, nics: tuple[NicId, ...]) -> None:
        async with self._changing:
            removed = await in_thread(_remove, frozenset(nics))
            await self._guard.forget(removed)
            await self._switches.forget(removed, *await in_thread(_names))

    async def taps(self) -> tuple[TapReport, ...]:
        taps = await in_thread(_list_taps)
        if all(tap.link for tap in taps):
            return taps
        switches = await self._switches.plugged_in()
        return tuple(replace(tap, link=tap.link or switches.get(tap.name, "")) for tap in taps)

    async def links(self, names: tuple[str, ...]) -> tuple[bool, ...]:
        bridges = await in_thread(_tell_bridges, names)
        if all(bridges):
            return bridges
        switches = await self._switches.names()
        return tuple(
            is_bridge or name in switches for name, is_bridge in zip(names, bridges, strict=True)
        )

    async def hold(self, address: MasterAddress, for_s: int) -> None:
        async with self._changing:
            await in_thread(held.hold, address, for_s)

    async def let_go(self, ip: str) -> None:
        async with self._changing:
            await in_thread(held.let_go, ip)

    async def holds(self, ip: str) -> str:
        return await in_thread(held.holds, ip)


def _make_all(nics: tuple[NicSpec, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Make taps; return their names, and of those that were there which may be in a switch."""
    return tuple(tap_name(nic.id) for nic in nics), tuple(filter(None, map(_make, nics)))


def _make(nic: NicSpec) -> str:
    name = tap_name(nic.id)
    with open_netlink(f"make the tap {name}") as netlink:
        if nic.mode == "bridged":
            _bridge(
                netlink, nic.link, filters=bool(nic.vlan)
            )  # without one, there shall be no tap either
        was_there = netlink.find(name) is not None
        _tap(netlink, name, nic)
    return name if was_there and nic.mode != "openvswitch" else ""


def _connect_all(nics: tuple[NicSpec, ...]) -> None:
    for nic in nics:
        _connect(nic)


def _connect(nic: NicSpec) -> None:
    name = tap_name(nic.id)
    with open_netlink(f"plug in the tap {name}") as netlink:
        if nic.mode == "bridged":
            bridge = _bridge(netlink, nic.link, filters=bool(nic.vlan))
            _plug_in(netlink, _tap(netlink, name, nic), bridge)
        elif nic.mode == "openvswitch":
            _stand_by(netlink, _tap(netlink, name, nic), netlink.find(nic.link))
        else:
            _route_to(netlink, _tap(netlink, name, nic), nic)


def _remove(nics: frozenset[NicId]) -> tuple[str, ...]:
    """Delete taps; return their names."""
    removed = []
    with open_netlink("remove taps") as netlink:
        for link in filter(_may_be_ours, netlink.all()):
            label = read_alias(link.alias)
            if label[0] in nics if label else not link.alias:
                netlink.delete(link)
                removed.append(link.name)
    return tuple(removed)


def _check(nics: tuple[NicSpec, ...]) -> None:
    for nic in nics:
        check_nic(nic)
    bridged = [nic for nic in nics if nic.mode == "bridged"]
    if bridged:
        with open_netlink("look at the links of this node") as netlink:
            for nic in bridged:
                _bridge(netlink, nic.link, filters=bool(nic.vlan))


def _may_be_ours(link: Link) -> bool:
    return link.kind == "tun" and link.name.startswith(PREFIX)


def _bridge(netlink: Netlink, name: str, *, filters: bool) -> Link:
    """Return a bridge of this node, which filters VLANs if it has to."""
    link = netlink.find(name)
    if link is None or link.kind != "bridge":
        problem = "is no bridge" if link else "does not exist"
        raise NodeFailure(
            f"The bridge {name!r} {problem} on this node; create it, or give the nic another link.",
            link=name,
        )
    if filters and not link.filters_vlans:
        raise NodeFailure(
            f"The bridge {name!r} does not tell VLANs apart; “ip link set {name} type bridge "
            "vlan_filtering 1” has it do so, where the kernel can.",
            link=name,
        )
    return link


def _tap(netlink: Netlink, name: str, nic: NicSpec) -> Link:
    """Return the nic's tap; make it if need be, and label it as soon as it is there."""
    if netlink.find(name) is None:
        make_tap(name, several_queues=nic.queues > 1)
    tap = netlink.find(name)
    label = alias(nic.id, nic.instance)
    if tap is None or not _may_be_ours(tap) or tap.alias not in ("", label):
        raise NodeFailure(
            f"The name {name} of the nic's tap is taken by something else on this node.", tap=name
        )
    if not tap.alias:
        netlink.set(tap, ifalias=label)
    return tap


def _plug_in(netlink: Netlink, tap: Link, bridge: Link) -> None:
    # The host shall have no address of its own on the guest's wire.
    _turn_on("ipv6", tap, "disable_ipv6")
    # With the bridge's MTU: a bridge may shrink to the smallest of its ports.
    netlink.set(tap, address=host_mac(tap.address), mtu=bridge.mtu)
    netlink.set(tap, master=bridge.number)
    netlink.set(tap, state="up")


def _stand_by(netlink: Netlink, tap: Link, switch: Link | None) -> None:
    """Have a tap ready for its switch, whose own device there is while Open vSwitch runs."""
    _turn_on("ipv6", tap, "disable_ipv6")
    # With the switch's MTU: its device shrinks to that of the smallest port.
    netlink.set(tap, address=host_mac(tap.address), mtu=(switch or tap).mtu)
    if any(link.number == tap.bridge and link.kind == "bridge" for link in netlink.all()):
        netlink.set(tap, master=0)  # what is in a bridge is in no switch
    netlink.set(tap, state="up")


def _route_to(netlink: Netlink, tap: Link, nic: NicSpec) -> None:
    """Lead traffic for the nic's address to its tap, and answer for it on the guest's wire."""
    netlink.set(tap, address=host_mac(tap.address), master=0)
    netlink.set(tap, state="up")
    family, proxy = ("ipv6", "proxy_ndp") if ":" in nic.ip else ("ipv4", "proxy_arp")
    for setting in (proxy, "forwarding"):
        _turn_on(family, tap, setting)
    netlink.route(host_route(nic), tap, route_table(nic))


def _turn_on(family: str, link: Link, setting: str) -> None:
    # Some containers have /proc/sys read-only, some kernels no IPv6: guests work all the same.
    with suppress(OSError):
        (_SETTINGS / family / "conf" / link.name / setting).write_text("1")


def _list_taps() -> tuple[TapReport, ...]:
    with open_netlink("list the taps of this node") as netlink:
        links = netlink.all()
    names = {link.number: link.name for link in links if link.kind == "bridge"}
    return tuple(
        TapReport(name=link.name, nic=nic, instance=instance, link=names.get(link.bridge, ""))
        for link in sorted(filter(_may_be_ours, links), key=lambda link: link.name)
        for nic, instance in filter(None, [read_alias(link.alias)])
    )


def _names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all devices, and of those that may be switches' own."""
    with open_netlink("look at the links of this node") as netlink:
        links = netlink.all()
    own = {link.name for link in links if link.kind in ("openvswitch", "tun")}
    return frozenset(link.name for link in links), frozenset(own)


def _tell_bridges(names: tuple[str, ...]) -> tuple[bool, ...]:
    with open_netlink("look at the links of this node") as netlink:
        bridges = {link.name for link in netlink.all() if link.kind == "bridge"}
    return tuple(name in bridges for name in names)
