"""Talk to DRBD 9 by netlink: all devices in a few looks, and a secret on no command line.

Here a device is made of several things: a resource with its volume, a connection with its path, and
what both have together. Each kind is listed by itself, so the lists may be of different moments; a
device counts as what the list of devices says of it, and what the others lack is not there yet.

Source: linux/drbd_genl.h of DRBD 9.2, whose numbers are those of 9.1.
"""

from common.model.disk_parameters import DrbdParameters
from noded.storage.drbd import messages
from noded.storage.drbd.line import NO_SUCH_RESOURCE, Line
from noded.storage.drbd.messages import (
    CONTEXT,
    NET,
    Attributes,
    as_flag,
    as_number,
    as_text,
    nest,
    pack_address,
    read_text,
)
from noded.storage.drbd.module import Connection
from noded.storage.drbd.nine.told import PATH, Told

VERSION = 2  # of the module's language
NEW_MINOR, NEW_RESOURCE, CONNECT, DISCONNECT, DOWN = 5, 7, 10, 11, 27
PEER_DEVICE_OPTIONS, NEW_PEER, NEW_PATH, DEL_PEER = 43, 44, 45, 46
GET_RESOURCES, GET_DEVICES, GET_CONNECTIONS, GET_PEER_DEVICES = 30, 31, 32, 33
RESOURCE_OPTIONS, SPEED, CONNECTING = 4, 27, 29  # attributes, each made of others


def look() -> Told:
    """Ask for everything. Blocks, for no longer than the module takes.

    Raises:
        NodeFailure: there is no module, or it is none of 9.
    """
    with Line(VERSION) as line:
        return Told(
            line.every(GET_RESOURCES),
            line.every(GET_DEVICES),
            line.every(GET_CONNECTIONS),
            line.every(GET_PEER_DEVICES),
        )


def owner(minor: int) -> str | None:
    """Return the resource whose device has a number, if there is such a one. Blocks."""
    with Line(VERSION) as line:
        for said in line.every(GET_DEVICES):
            if said.minor == minor:
                return read_text(said.parts.get(CONTEXT), 2)
    return None


def create(resource: str, minor: int, number: int) -> None:
    """Make a device without volumes or a peer; one that is there stays. Blocks.

    It becomes primary only when it is told to, not when somebody opens it. A quorum is off by
    itself: of two nodes, none could lose the other.

    Raises:
        NodeFailure: the module refused.
    """
    what = f"make device {minor} for {resource}"
    options = {3: as_flag(value=False), 4: as_number(number)}  # promote by itself; our number
    with Line(VERSION) as line:
        asked = messages.named(resource) + nest(RESOURCE_OPTIONS, options)
        line.change(NEW_RESOURCE, asked, what)
        line.change(NEW_MINOR, messages.volume(resource), what, minor=minor)


def introduce(connection: Connection, options: Attributes, parameters: DrbdParameters) -> None:
    """Tell a device of its peer, and have it forget the one it had. Blocks.

    Args:
        connection: with whom; nothing of a former one is left.
        options: by their numbers in ``net_conf``.
        parameters: say how fast is copied.

    Raises:
        DigestUnknown: the kernel has no such HMAC.
        NodeFailure: the module refused.
    """
    resource, what = connection.resource, f"connect {connection.resource}"
    peer = _peer(connection)
    ends = (connection.own, connection.peer)
    path = {place: pack_address(e.address, e.port) for place, e in enumerate(ends, start=1)}
    context = nest(CONTEXT, peer)
    name = {31: as_text(f"{resource}-{connection.peer_number}")}
    with Line(VERSION) as line:
        for said in line.every(GET_CONNECTIONS):
            there = said.parts.get(CONTEXT, {})
            if read_text(there, 2) == resource:
                old = nest(CONTEXT, {6: there[6], 2: there[2]})
                line.change(DISCONNECT, old, what)
                line.change(DEL_PEER, old, what)
        line.change(NEW_PEER, context + nest(NET, {**options, **name}), what)
        line.change(NEW_PATH, context + nest(PATH, path), what)
        volume = nest(CONTEXT, {**peer, 1: as_number(0)})
        line.change(PEER_DEVICE_OPTIONS, volume + nest(SPEED, speed(parameters)), what)


def meet(connection: Connection, *, discard: bool) -> None:
    """Have a device look for the peer that it was told of. Blocks.

    Args:
        connection: with whom.
        discard: whether what this end has written by itself is to be given up.

    Raises:
        NodeFailure: the module refused.
    """
    asked = nest(CONTEXT, _peer(connection)) + nest(CONNECTING, {2: as_flag(discard)})
    with Line(VERSION) as line:
        line.change(CONNECT, asked, f"connect {connection.resource}")


def remove(resource: str) -> None:
    """Take a device away, demoted, disconnected and detached; none is fine. Blocks.

    Raises:
        InUse: something has it open.
        NodeFailure: the module refused.
    """
    with Line(VERSION) as line:
        line.change(DOWN, messages.named(resource), f"remove {resource}", fine=(NO_SUCH_RESOURCE,))


def speed(parameters: DrbdParameters) -> dict[int, bytes]:
    """Return how fast is copied, by the numbers in ``peer_device_conf``."""
    if not parameters.dynamic_resync:
        return {1: as_number(parameters.resync_rate), 2: as_number(0)}
    return {
        2: as_number(parameters.c_plan_ahead),
        3: as_number(parameters.c_delay_target),
        4: as_number(parameters.c_fill_target),
        5: as_number(parameters.c_max_rate),
        6: as_number(parameters.c_min_rate),
    }


def _peer(connection: Connection) -> dict[int, bytes]:
    return {6: as_number(connection.peer_number), 2: as_text(connection.resource)}
