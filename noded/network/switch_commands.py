"""How taps are put into Open vSwitch, and into VLANs of a bridge: values in, arguments out.

Source: ovs-vsctl(8) of Open vSwitch 3.1, bridge(8) of iproute2 6.1.
"""

from common.vlans import Vlans

_PORT = ("tag", "trunks", "vlan_mode")  # what a port has of VLANs


def exists(switch: str) -> tuple[str, ...]:
    """Return the command that ends with 0 if there is such a switch, and with 2 if not."""
    return ("ovs-vsctl", "br-exists", switch)


def switches() -> tuple[str, ...]:
    """Return the command that prints the switches of a node."""
    return ("ovs-vsctl", "list-br")


def switch_of(tap: str) -> tuple[str, ...]:
    """Return the command that prints which switch has a tap; it fails if none has."""
    return ("ovs-vsctl", "port-to-br", tap)


def plug(tap: str, switch: str, vlans: Vlans, *, is_there: bool) -> tuple[str, ...]:
    """Return the command that puts a tap into a switch, and its VLANs, in one transaction."""
    begin: tuple[str, ...] = ("ovs-vsctl",)
    if not is_there:  # it may be in another one
        begin = (*begin, "--if-exists", "del-port", tap, "--", "add-port", switch, tap, "--")
    told = _of_port(vlans)
    return (
        *begin,
        "clear",
        "port",
        tap,
        *_PORT,
        *(("--", "set", "port", tap, *told) if told else ()),
    )


def unplug(taps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that takes taps out of whichever switches they are in."""
    words = [word for tap in taps for word in ("--", "--if-exists", "del-port", tap)]
    return ("ovs-vsctl", *words[1:])


def bridge_vlans(tap: str, vlans: Vlans) -> str:
    """Return what ``bridge -batch`` reads to have a port in these VLANs, and in no others."""
    lines = [f"vlan del dev {tap} vid 1-4094"]
    if vlans.untagged is not None:
        lines.append(f"vlan add dev {tap} vid {vlans.untagged} pvid untagged")
    lines += [f"vlan add dev {tap} vid {number}" for number in vlans.tagged]
    return "".join(f"{line}\n" for line in lines)


def _of_port(vlans: Vlans) -> tuple[str, ...]:
    trunks = f"trunks={','.join(map(str, vlans.tagged))}"
    if vlans.untagged is None:
        return (trunks, "vlan_mode=trunk") if vlans.tagged else ()
    if not vlans.tagged:
        return (f"tag={vlans.untagged}", "vlan_mode=access")
    return (f"tag={vlans.untagged}", trunks, "vlan_mode=native-untagged")
