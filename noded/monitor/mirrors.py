"""How copies of disks on two nodes are, as DRBD's module tells everybody; pure.

Source: drbd_proc.c of Linux 6.1 (module 8.4); later modules tell their version alone.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from common.errors import NodeFailure

_DEVICE = re.compile(r"^ *([0-9]+): cs:(\S+)(.*)", re.MULTILINE)
_STATES = re.compile(r" ro:(\w+)/(\w+) ds:(\w+)/(\w+) (\S) (\S+)")
_COUNTERS = re.compile(r"\b(ns|nr|dw|dr|al|bm|lo|pe|ua|ap|ep|oos):([0-9]+)")
_ORDER = re.compile(r"\bwo:(\S)")
_SYNC = re.compile(r"sync'ed: *([0-9.]+)% \(([0-9]+)/([0-9]+)\)([KM])")
_SPEED = re.compile(
    r"finish: ([0-9]+):([0-9]{2}):([0-9]{2}) speed: ([0-9,]+) .*K/sec(?: want: ([0-9,]+))?"
)
_VERSION = re.compile(r"version: (\S+) \(api:(\S+)/proto:(\S+)\)(?:\nsrcversion: *(\S+))?")

_BYTES = {"K": 1024, "M": 1024**2}


class Sync(NamedTuple):
    """A copy under way; the rest and the whole are in K or M, as ``unit`` says."""

    percent: float
    rest: int
    whole: int
    unit: str
    finish: tuple[int, int, int] | None  # hours, minutes, seconds
    speed_kib: int | None
    wanted_kib: int | None

    @property
    def rest_bytes(self) -> int:
        return self.rest * _BYTES[self.unit]

    @property
    def whole_bytes(self) -> int:
        return self.whole * _BYTES[self.unit]


class Mirror(NamedTuple):
    """A device: states are DRBD's words, of this node first; counters are by DRBD's names."""

    minor: int
    connection: str
    roles: tuple[str, str] = ("", "")
    disks: tuple[str, str] = ("", "")
    protocol: str = ""
    flags: str = ""
    counters: dict[str, int] = {}
    order: str | None = None
    sync: Sync | None = None

    @property
    def is_configured(self) -> bool:
        return self.connection != "Unconfigured"


class Mirrors(NamedTuple):
    """The module, and all its devices."""

    version: str
    api: str
    protocol: str
    source: str | None
    devices: tuple[Mirror, ...]


def parse_drbd(text: str) -> Mirrors:
    """Read ``/proc/drbd``.

    Raises:
        NodeFailure: it is not understood.
    """
    version = _VERSION.match(text)
    if version is None:
        raise NodeFailure(f"Cannot understand /proc/drbd: {text[:200]!r}.")
    return Mirrors(version[1], version[2], version[3], version[4], tuple(_devices(text)))


def _devices(text: str) -> Iterator[Mirror]:
    found = list(_DEVICE.finditer(text))
    for each, next_ in zip_longest(found, found[1:]):
        end = len(text) if next_ is None else next_.start()
        minor, connection = int(each[1]), each[2]
        if connection == "Unconfigured":
            yield Mirror(minor, connection)
            continue
        states = _STATES.match(each[3])
        if states is None:
            raise NodeFailure(f"Cannot understand /proc/drbd: {each[0][:200]!r}.")
        body = text[each.end() : end]
        order = _ORDER.search(body)
        yield Mirror(
            minor,
            connection,
            (states[1], states[2]),
            (states[3], states[4]),
            states[5],
            states[6],
            {name: int(value) for name, value in _COUNTERS.findall(body)},
            order[1] if order else None,
            _sync(body),
        )


def _sync(body: str) -> Sync | None:
    found = _SYNC.search(body)
    if found is None:
        return None
    speed = _SPEED.search(body)
    return Sync(
        percent=float(found[1]),
        rest=int(found[2]),
        whole=int(found[3]),
        unit=found[4],
        finish=(int(speed[1]), int(speed[2]), int(speed[3])) if speed else None,
        speed_kib=_with_commas(speed[4]) if speed else None,
        wanted_kib=_with_commas(speed[5]) if speed and speed[5] else None,
    )


def _with_commas(text: str) -> int:
    return int(text.replace(",", ""))
