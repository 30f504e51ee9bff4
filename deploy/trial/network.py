"""Network namespaces: one a node, and one with the switch between them.

The host's own network is not touched.
"""

import subprocess
from pathlib import Path

from deploy.trial.place import HUB, Place, Spot
from deploy.trial.transcript import Broken


def build(place: Place) -> None:
    """Make the switch, and plug a namespace for each node into it."""
    _ip("netns", "add", HUB)
    _ip("-n", HUB, "link", "add", "switch", "type", "bridge", "forward_delay", "0")
    _ip("-n", HUB, "link", "set", "switch", "up")
    for spot in place.spots:
        _plug_in(spot)


def tear_down(place: Place) -> None:
    """Remove what ``build`` made, as far as it is there."""
    for namespace in sorted(left_over(place)):
        _ip("netns", "del", namespace)


def present() -> set[str]:
    """Return the names of all network namespaces of this machine."""
    directory = Path("/run/netns")
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def left_over(place: Place) -> set[str]:
    """Return the names of this demonstration's namespaces that are there."""
    return present() & {HUB, *(spot.namespace for spot in place.spots)}


def processes(spot: Spot) -> list[int]:
    """Return the processes in a node's namespace."""
    if spot.namespace not in present():
        return []
    return [int(line) for line in _ip("netns", "pids", spot.namespace).split()]


def taps(spot: Spot) -> list[str]:
    """Return the names of a node's tap devices."""
    if spot.namespace not in present():
        return []
    listing = _ip("-n", spot.namespace, "-o", "link", "show")
    names = [line.split(": ")[1].split("@")[0] for line in listing.splitlines()]
    return [name for name in names if name.startswith("gnt")]


def _plug_in(spot: Spot) -> None:
    """Give a node a bridge with its address; guests' taps plug into the same bridge."""
    inside = ("-n", spot.namespace)
    _ip("netns", "add", spot.namespace)
    _ip(*inside, "link", "set", "lo", "up")
    _ip(
        "-n", HUB, "link", "add", spot.name, "type", "veth",
        "peer", "name", "eth0", "netns", spot.namespace,
    )  # fmt: skip
    _ip("-n", HUB, "link", "set", spot.name, "master", "switch", "up")
    # Left to itself it takes the lowest address among its ports. Now and then that is the tap's,
    # which is the same on every node that the guest comes to.
    address = "02:00:" + ":".join(f"{int(byte):02x}" for byte in spot.address.split("."))
    _ip(
        *inside, "link", "add", "br0", "address", address,
        "type", "bridge", "forward_delay", "0",
    )  # fmt: skip
    _ip(*inside, "link", "set", "eth0", "master", "br0", "up")
    _ip(*inside, "addr", "add", f"{spot.address}/24", "dev", "br0")
    _ip(*inside, "link", "set", "br0", "up")


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"“ip {' '.join(words)}” failed: {done.stderr.strip()}")
    return done.stdout
