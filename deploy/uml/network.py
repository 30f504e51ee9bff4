"""The lab's network: one namespace with a switch in it, a tap for each node, and cuts.

Nothing outside the namespace is touched, and nothing in it reaches outside.
"""

from pathlib import Path

from deploy.uml.command import run
from deploy.uml.place import HOST_ADDRESS, Place, Spot

SWITCH = "switch"
CUTS = ("bridge", "cuts")  # nftables' family and table


def build(place: Place) -> None:
    """Make the namespace and the switch, unless they are there."""
    if is_there(place):
        return
    run(("ip", "netns", "add", place.namespace))
    _ip(place, "link", "set", "lo", "up")
    _ip(place, "link", "add", SWITCH, "type", "bridge", "forward_delay", "0")
    _ip(place, "addr", "add", f"{HOST_ADDRESS}/24", "dev", SWITCH)
    _ip(place, "link", "set", SWITCH, "up")


def plug_in(place: Place, spot: Spot) -> None:
    """Make a node's tap, unless it is there."""
    if spot.tap in _ip(place, "-o", "link", "show"):
        return
    _ip(place, "tuntap", "add", spot.tap, "mode", "tap")
    _ip(place, "link", "set", spot.tap, "master", SWITCH, "up")


def is_there(place: Place) -> bool:
    return (Path("/run/netns") / place.namespace).exists()


def tear_down(place: Place) -> None:
    """Remove the namespace and all in it, as far as it is there."""
    if is_there(place):
        run(("ip", "netns", "del", place.namespace))


def inside(place: Place) -> tuple[str, ...]:
    """Return the words to put before a command that shall run in the namespace."""
    return ("ip", "netns", "exec", place.namespace)


def cut(place: Place, source: Spot, target: Spot) -> None:
    """Let nothing from ``source`` arrive at ``target``; the other direction is not touched.

    The switch drops it, so neither end is told: that is how a broken network looks.
    """
    rule = f'iifname "{source.tap}" oifname "{target.tap}" drop'
    if rule in cuts(place):
        return
    _nft(place, "add", "table", *CUTS)
    _nft(place, "add", "chain", *CUTS, "between", "{ type filter hook forward priority 0; }")
    _nft(place, "add", "rule", *CUTS, "between", rule)


def heal(place: Place) -> None:
    """Mend all cuts."""
    _nft(place, "add", "table", *CUTS)  # so that it is there to be deleted
    _nft(place, "delete", "table", *CUTS)


def cuts(place: Place) -> list[str]:
    """Return the rules in force."""
    lines = _nft(place, "list", "ruleset").splitlines()
    return [line.strip() for line in lines if line.strip().endswith("drop")]


def _ip(place: Place, *words: str) -> str:
    return run(("ip", "-n", place.namespace, *words))


def _nft(place: Place, *words: str) -> str:
    return run((*inside(place), "nft", *words))
