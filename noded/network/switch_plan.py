"""Which switch and VLANs a nic is put into, and which ports are left over."""

from collections.abc import Collection

from common.errors import NodeFailure
from common.noderpc.network import NicSpec
from common.vlans import Vlans, parse_vlans
from noded.network.switch_parse import Seen


def place(seen: Seen, nic: NicSpec) -> tuple[str, Vlans]:
    """Return the bridge and the VLANs of a nic.

    Raises:
        NodeFailure: there is no such switch, it has no such VLANs, or it would not guard the nic.
    """
    switch = seen.switches.get(nic.link)
    if switch is None:
        raise NodeFailure(
            f"The switch {nic.link!r} does not exist on this node; make it with “ovs-vsctl "
            f"add-br {nic.link}”, or give the nic another link.",
            link=nic.link,
        )
    if nic.guarded and switch.passes_filters_by:
        raise NodeFailure(
            f"With {switch.passes_filters_by} the switch {nic.link!r} forwards frames before "
            "nftables sees them, so that its guests could use the addresses of others; give the "
            "nic another link, or “guarded=no” if they may.",
            link=nic.link,
        )
    vlans = parse_vlans(nic.vlan)
    if switch.vlan is None:
        return switch.bridge, vlans
    if vlans != Vlans():
        raise NodeFailure(
            f"The switch {nic.link!r} is VLAN {switch.vlan} of {switch.bridge!r}, and has none of "
            f"its own; give the nic the link {switch.bridge}, or no vlan.",
            link=nic.link,
        )
    return switch.bridge, Vlans(switch.vlan)


def left_over(seen: Seen, links: Collection[str], devices: Collection[str]) -> tuple[str, ...]:
    """Return our ports of taps that are gone.

    Args:
        seen: the switches.
        links: the names of all network devices that we see.
        devices: those that may be the ones of switches. A switch that has none is in another
            network namespace, and so are the taps that are plugged into it.
    """
    return tuple(
        port.name
        for port in seen.ports.values()
        if port.nic and port.bridge in devices and port.name not in links
    )
