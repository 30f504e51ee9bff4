"""Read what DRBD 9 tells of its devices, of which each has one peer at most.

Source: linux/drbd.h (the states), linux/drbd_genl.h of DRBD 9.2.
"""

import struct
from collections.abc import Iterable

from common.names import MiB
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport
from noded.storage.drbd import states
from noded.storage.drbd.messages import (
    CONTEXT,
    DISK,
    NET,
    Attributes,
    Message,
    read_number,
    read_text,
    unpack_address,
)
from noded.storage.drbd.module import Connection, Device, Endpoint
from noded.storage.drbd.nine.told import PATH, Told

_RESOURCE, _DEVICE, _CONNECTION, _PEER = 15, 16, 17, 18  # how each is just now
_OF_DEVICE, _OF_PEER = 20, 22  # what has been counted
_COPIES = (
    CopyState.NONE,  # diskless
    CopyState.NONE,  # attaching
    CopyState.NONE,  # detaching
    CopyState.NONE,  # failed
    CopyState.CONSISTENT,  # negotiating: it has asked its peer, and not been told yet
    CopyState.INCONSISTENT,
    CopyState.OUTDATED,
    CopyState.UNKNOWN,
    CopyState.CONSISTENT,
    CopyState.UP_TO_DATE,
)
# While the peer cannot be asked, DRBD 9 takes a copy for the newest that has never met one, such as
# a converted one. Of one that has, it knows: after an attachment it calls that consistent itself.
_WORSE = (CopyState.INCONSISTENT, CopyState.OUTDATED)
_HAS_MET = 1 << 4  # of what is noted of a peer: that its copy was seen
_CONNECTED = 9  # a socket; whether the two have introduced each other, the peer's device tells
_MET = 10
_WAITS = (3, 4, 5)  # of a peer's device: for an operator, for the peer, for another device
_SECTORS_PER_MIB = 2048

Parts = dict[int, Attributes]


def read_devices(told: Told) -> tuple[Device, ...]:
    """Return the devices that the module tells of."""
    resources, connections, peers = map(
        _by_resource, (told.resources, told.connections, told.peers)
    )
    return tuple(
        _device(
            said,
            resources.get(_name(said), {}),
            connections.get(_name(said), {}),
            peers.get(_name(said), {}),
        )
        for said in told.devices
    )


def _by_resource(messages: Iterable[Message]) -> dict[str, Parts]:
    return {_name(said): dict(said.parts) for said in messages}


def _name(said: Message) -> str:
    return read_text(said.parts.get(CONTEXT), 2)


def _device(said: Message, resource: Parts, connection: Parts, peer: Parts) -> Device:
    disk = said.parts.get(DISK)
    link = _link(connection, peer)
    size = read_number(said.parts.get(_OF_DEVICE), 1)
    return Device(
        resource=_name(said),
        minor=said.minor,
        volumes=(read_text(disk, 1), read_text(disk, 2)) if disk else None,
        connection=None if link is Link.NONE else _connection(connection),
        allows_two=link is not Link.NONE and bool(read_number(connection.get(NET), 24)),
        size=MiB(size // _SECTORS_PER_MIB),
        report=_report(dict(said.parts), resource, connection, peer, size),
    )


def _connection(connection: Parts) -> Connection | None:
    context, path = connection[CONTEXT], connection.get(PATH, {})
    if 1 not in path or 2 not in path:
        return None
    own, peer = unpack_address(path[1]), unpack_address(path[2])
    number = 1 - read_number(context, 6)
    return Connection(read_text(context, 2), Endpoint(*own), Endpoint(*peer), number)


def _link(connection: Parts, peer: Parts) -> Link:
    state = read_number(connection.get(_CONNECTION), 1)
    if state in (states.STANDALONE, states.DISCONNECTING):
        return Link.NONE
    has_met = state == _CONNECTED and read_number(peer.get(_PEER), 1) >= _MET
    return Link.CONNECTED if has_met else Link.CONNECTING


def _report(
    device: Parts, resource: Parts, connection: Parts, peer: Parts, size: int
) -> MirrorReport:
    how, counted = peer.get(_PEER, {}), peer.get(_OF_PEER, {})
    behind = read_number(counted, 5)
    copying = states.copying(replication := read_number(how, 1))
    is_waiting = any(read_number(how, each) for each in _WAITS)
    is_primary = read_number(resource.get(_RESOURCE), 1) == states.PRIMARY
    own = _COPIES[read_number(device.get(_DEVICE), 1)]
    others = _COPIES[read_number(how, 2)] if how else CopyState.UNKNOWN
    link = _link(connection, peer)
    has_met = bool(read_number(counted, 9) & _HAS_MET)
    if not (link is Link.CONNECTED or is_primary or others in _WORSE or has_met):
        own = CopyState.CONSISTENT if own is CopyState.UP_TO_DATE else own
    return MirrorReport(
        primary=is_primary,
        peer_primary=read_number(connection.get(_CONNECTION), 2) == states.PRIMARY,
        own=own,
        peer=others,
        link=link,
        copying=copying,
        paused=replication in states.PAUSED or (is_waiting and copying is not Copying.NOTHING),
        percent=_percent(copying, size, behind, counted),
        behind_kib=behind // 2,
        rate_kib=0 if copying is Copying.NOTHING else _rate(counted),
        generations=_generations(device.get(_OF_DEVICE, {}), counted),
    )


def _percent(copying: Copying, size: int, behind: int, counted: Attributes) -> float:
    if copying is Copying.VERIFYING:
        size, behind = size - read_number(counted, 11), read_number(counted, 14)
    return 100.0 - 100.0 * min(behind, size) / size if size > 0 else 100.0


def _rate(counted: Attributes) -> int:
    """Return how much was copied a second since the module noted it the last time but one."""
    milliseconds, sectors = read_number(counted, 19), read_number(counted, 20)
    return sectors * 500 // milliseconds if milliseconds else 0


def _generations(device: Attributes, peer: Attributes) -> tuple[str, ...]:
    """Return current, the peer's bitmap's and two former ones; of no copy there are none."""
    if not (current := read_number(device, 12)):
        return ()
    history = [each for (each,) in struct.iter_unpack("=Q", device.get(14, b""))][:2]
    known = (current, read_number(peer, 7), *history, 0, 0)
    return tuple(map(states.generation, known[:4]))
