"""Read what DRBD 8.4 tells of its devices.

Source: linux/drbd.h (the states, and ``union drbd_state``), linux/drbd_genl.h of Linux 6.1.
"""

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple

from common.names import MiB
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport
from noded.storage.drbd import states
from noded.storage.drbd.messages import (
    CONTEXT,
    DISK,
    NET,
    NO_MINOR,
    STATE,
    Attributes,
    Message,
    read_number,
    read_text,
    unpack_address,
)
from noded.storage.drbd.module import Connection, Device, Endpoint

KIB_PER_BIT = 4

_COPIES = (
    CopyState.NONE,  # diskless
    CopyState.NONE,  # attaching
    CopyState.NONE,  # failed
    CopyState.CONSISTENT,  # negotiating: it has asked its peer, and not been told yet
    CopyState.INCONSISTENT,
    CopyState.OUTDATED,
    CopyState.UNKNOWN,
    CopyState.CONSISTENT,
    CopyState.UP_TO_DATE,
)
_CONNECTED = 10
_NUMBER = re.compile(r"^ *([0-9]+): cs:", re.MULTILINE)
_SPEED = re.compile(r"speed: ([0-9,]+)")
_VERIFIED = re.compile(r"verified: *([0-9.]+)%")


class Progress(NamedTuple):
    """How fast a device is copied or compared, and how much has been compared."""

    rate_kib: int = 0
    verified: float | None = None  # percent


def read_devices(
    messages: tuple[Message, ...], progress: Mapping[int, Progress]
) -> tuple[Device, ...]:
    """Return the devices that the module tells of; ``progress`` is by their numbers."""
    return tuple(
        _device(said, progress.get(said.minor, Progress()))
        for said in messages
        if said.minor != NO_MINOR
    )


def resource_of(said: Message) -> str:
    """Return whose device it is."""
    return read_text(said.parts.get(CONTEXT, {}), 2)


def is_copying(said: Message) -> bool:
    return _state(said)[2] > _CONNECTED


def read_progress(text: str) -> dict[int, Progress]:
    """Return how devices get on that are copied or compared, by number, from ``/proc/drbd``."""
    _, *pieces = _NUMBER.split(text)
    found = {}
    for number, piece in zip(pieces[::2], pieces[1::2], strict=True):
        if match := _SPEED.search(piece):
            verified = _VERIFIED.search(piece)
            found[int(number)] = Progress(
                int(match[1].replace(",", "")), float(verified[1]) if verified else None
            )
    return found


def _device(said: Message, progress: Progress) -> Device:
    disk, net = said.parts.get(DISK), said.parts.get(NET)
    state = said.parts.get(STATE, {})
    return Device(
        resource=resource_of(said),
        minor=said.minor,
        volumes=(read_text(disk, 1), read_text(disk, 2)) if disk else None,
        connection=_connection(said.parts.get(CONTEXT, {})) if net else None,
        allows_two=bool(net and net.get(24, b"\0") != b"\0"),
        size=MiB(read_number(state, 3) >> 11),
        report=_report(said, state, progress),
    )


def _connection(context: Attributes) -> Connection | None:
    if 3 not in context or 4 not in context:
        return None
    own, peer = unpack_address(context[3]), unpack_address(context[4])
    return Connection(read_text(context, 2), Endpoint(*own), Endpoint(*peer))


def _report(said: Message, state: Attributes, progress: Progress) -> MirrorReport:
    role, peer_role, link, own, peer, is_paused = _state(said)
    total, behind = read_number(state, 9), read_number(state, 10)
    equal = 100.0 - 100.0 * min(behind, total) / total if total else 100.0
    copying = states.copying(link)
    return MirrorReport(
        primary=role == states.PRIMARY,
        peer_primary=peer_role == states.PRIMARY,
        own=_COPIES[own],
        peer=_COPIES[peer],
        link=_link(link),
        copying=copying,
        paused=link in states.PAUSED or (is_paused and copying is not Copying.NOTHING),
        percent=equal if progress.verified is None else progress.verified,
        behind_kib=behind * KIB_PER_BIT,
        rate_kib=progress.rate_kib,
        generations=_generations(state.get(7, b"")),
    )


def _generations(data: bytes) -> tuple[str, ...]:
    """Return current, bitmap's and two former ones."""
    return tuple(states.generation(each) for (each,) in struct.iter_unpack("=Q", data))


def _state(said: Message) -> tuple[int, int, int, int, int, bool]:
    """Take the word apart that has roles, connection, both copies, and whether it waits."""
    word = read_number(said.parts.get(STATE, {}), 2)
    waits = bool(word >> 18 & 0b111)
    return word & 3, word >> 2 & 3, word >> 4 & 31, word >> 9 & 15, word >> 13 & 15, waits


def _link(number: int) -> Link:
    if number >= _CONNECTED:
        return Link.CONNECTED
    return Link.NONE if number in (states.STANDALONE, states.DISCONNECTING) else Link.CONNECTING
