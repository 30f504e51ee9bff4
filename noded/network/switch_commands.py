"""How taps are put into Open vSwitch, and into VLANs of a bridge: values in, arguments out.

Source: ovs-vsctl(8) of Open vSwitch 3.1, bridge(8) of iproute2 6.1.
"""

from common.names import NicId
from common.vlans import Vlans
from noded.network.switch_parse import NIC, TABLES

LIMIT_S = 8  # its program itself waits without end for a silent database, and for ovs-vswitchd

_PORT = ("tag", "trunks", "vlan_mode")  # what a port has of VLANs


def look() -> tuple[str, ...]:
    """Return the command that prints what ``switch_parse.read_switches`` reads."""
    told = [
        word
        for table, columns in TABLES.items()
        for word in ("--", f"--columns={','.join(columns)}", "list", table)
    ]
    return ("ovs-vsctl", f"--timeout={LIMIT_S}", "--format=json", *told)


def plug(tap: str, nic: NicId, bridge: str, vlans: Vlans, *, is_there: bool) -> tuple[str, ...]:
    """Return the command that puts a tap into a bridge, and its VLANs, in one transaction.

    It ends when ovs-vswitchd has done so, or tried.
    """
    begin: tuple[str, ...] = ("ovs-vsctl", f"--timeout={LIMIT_S}")
    if not is_there:  # it may be in another one
        begin = (*begin, "--if-exists", "del-port", tap, "--", "add-port", bridge, tap, "--")
    return (
        *begin,
        *("clear", "port", tap, *_PORT, "--"),
        *("set", "port", tap, f"external_ids:{NIC}={nic}", *_of_port(vlans)),
    )


def problem(tap: str) -> tuple[str, ...]:
    """Return the command that prints why a port does not work, after it was put in.

    That is no failure to ``plug``, which ends with 0.
    """
    return ("ovs-vsctl", f"--timeout={LIMIT_S}", "get", "interface", tap, "error")


def unplug(taps: tuple[str, ...], *, are_gone: bool) -> tuple[str, ...]:
    """Return the command that takes taps out of whichever switches they are in.

    For those that are gone it waits for nobody: where ovs-vswitchd is down, its next one finds out.
    Others it has to let go of before something else can have them.
    """
    words = [word for tap in taps for word in ("--", "--if-exists", "del-port", tap)]
    waiting = ("--no-wait",) if are_gone else ()
    return ("ovs-vsctl", f"--timeout={LIMIT_S}", *waiting, *words)


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
