"""The lab's network: one namespace with a switch in it, a tap for each node, and cuts.

Nothing outside the namespace is touched, and nothing in it reaches outside.
"""

import os
from pathlib import Path

from deploy.uml.command import Trouble, run
from deploy.uml.place import HOST_ADDRESS, Place, Spot

SWITCH = "switch"
CUTS = ("bridge", "cuts")  # nftables' family and table


def build(place: Place) -> None:
    """Make the namespace and the switch, as far as they are not there.

    Raises:
        Trouble: this machine does not allow it.
    """
    if not is_there(place):
        tear_down(place)
        try:
            run(("ip", "netns", "add", place.namespace))
        except Trouble as error:
            raise Trouble(f"This machine allows no network namespaces. {error}") from error
    if not _has(place, SWITCH):
        _ip(place, "link", "add", SWITCH, "type", "bridge", "forward_delay", "0")
    _ip(place, "addr", "replace", f"{HOST_ADDRESS}/24", "dev", SWITCH)
    for link in ("lo", SWITCH):
        _ip(place, "link", "set", link, "up")


def plug_in(place: Place, spot: Spot) -> None:
    """Make a node's tap, unless it is there.

    Raises:
        Trouble: this machine does not allow it.
    """
    if not _has(place, spot.tap):
        try:
            _ip(place, "tuntap", "add", spot.tap, "mode", "tap")
        except Trouble as error:
            raise Trouble(f"This machine allows no taps (/dev/net/tun). {error}") from error
    _ip(place, "link", "set", spot.tap, "master", SWITCH, "up")


def why_not(place: Place) -> str:
    """Say why this machine allows no such network; empty if it does, which is tried."""
    try:
        build(place)
        plug_in(place, place.spots(1)[0])
    except Trouble as error:
        return str(error)
    finally:
        tear_down(place)
    return ""


def is_there(place: Place) -> bool:
    return os.path.ismount(_name(place))  # a file, of which pathlib thinks that it cannot be one


def tear_down(place: Place) -> None:
    """Remove the namespace and all in it, as far as it is there."""
    if _name(place).exists():
        run(("ip", "netns", "del", place.namespace))


def inside(place: Place) -> tuple[str, ...]:
    """Return the words to put before a command that shall run in the namespace."""
    return ("ip", "netns", "exec", place.namespace)


def cut(place: Place, source: Spot, target: Spot) -> None:
    """Let nothing from ``source`` arrive at ``target``; the other direction is not touched.

    The switch drops it, so neither end is told: that is how a broken network looks.

    Raises:
        Trouble: there is no network, as the lab is down.
    """
    if not is_there(place):
        raise Trouble("The lab is down, and its network with it; “deploy/lab up” starts it.")
    rule = f'iifname "{source.tap}" oifname "{target.tap}" drop'
    if rule in cuts(place):
        return
    _nft(place, "add", "table", *CUTS)
    _nft(place, "add", "chain", *CUTS, "between", "{ type filter hook forward priority 0; }")
    _nft(place, "add", "rule", *CUTS, "between", rule)


def heal(place: Place) -> None:
    """Mend all cuts."""
    if is_there(place):
        _nft(place, "add", "table", *CUTS)  # so that it is there to be deleted
        _nft(place, "delete", "table", *CUTS)


def cuts(place: Place) -> list[str]:
    """Return the rules in force."""
    if not is_there(place):
        return []
    lines = _nft(place, "list", "ruleset").splitlines()
    return [line.strip() for line in lines if line.strip().endswith("drop")]


def _name(place: Place) -> Path:
    return Path("/run/netns") / place.namespace


def _has(place: Place, link: str) -> bool:
    return f": {link}:" in _ip(place, "-o", "link", "show")


def _ip(place: Place, *words: str) -> str:
    return run(("ip", "-n", place.namespace, *words))


def _nft(place: Place, *words: str) -> str:
    return run((*inside(place), "nft", *words))
