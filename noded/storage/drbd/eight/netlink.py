"""Talk to DRBD 8.4 by netlink: all devices in one look, and a secret on no command line.

``drbdsetup`` takes the secret of a connection as an argument, which every process of the node can
read while it runs; and it needs a process for each look and each change. What has many options, is
refused for many reasons, or may wait for a disk that hangs, is left to it.

Source: linux/drbd_genl.h of Linux 6.1.
"""

from noded.storage.drbd import messages
from noded.storage.drbd.line import NO_SUCH_RESOURCE, Line
from noded.storage.drbd.messages import NET, Attributes, Message, as_flag, nest
from noded.storage.drbd.module import Connection

VERSION = 1  # of the module's language
GET_STATUS, NEW_MINOR, NEW_RESOURCE, CONNECT, DISCONNECT, DOWN = 2, 5, 7, 10, 11, 27
PRIMARY, SECONDARY, NEW_GENERATION, CHANGE_CONNECTION = 14, 15, 16, 29
ROLE, GENERATION = 6, 10  # attributes, each made of others


def devices() -> tuple[Message, ...]:
    """Return what the module says of each device. Blocks, for no longer than the module takes.

    Raises:
        NodeFailure: there is no module, or it is none of 8.4.
    """
    with Line(VERSION) as line:
        return tuple(line.every(GET_STATUS))


def device(minor: int) -> Message | None:
    """Return what the module says of one device, if there is such a one. Blocks."""
    with Line(VERSION) as line:
        return line.ask(GET_STATUS, minor)


def connect(connection: Connection, options: Attributes) -> None:
    """Have a device look for its peer; options are by their numbers in ``net_conf``. Blocks.

    Raises:
        DigestUnknown: the kernel has no such HMAC.
        NodeFailure: the module refused.
    """
    parts = messages.connection(connection, options)
    with Line(VERSION) as line:
        line.change(CONNECT, parts, f"connect {connection.resource}")


def create(resource: str, minor: int) -> None:
    """Make a device without volumes or a peer; one that is there stays. Blocks.

    Raises:
        NodeFailure: the module refused.
    """
    what = f"make device {minor} for {resource}"
    with Line(VERSION) as line:
        line.change(NEW_RESOURCE, messages.named(resource), what)
        line.change(NEW_MINOR, messages.volume(resource), what, minor=minor)


def promote(resource: str, minor: int, *, force: bool) -> None:
    """Make a device primary, if it is that of a resource. Blocks, also while a peer is missed.

    Raises:
        NodeFailure: the module refused.
    """
    parts = messages.volume(resource) + nest(ROLE, {1: as_flag(force)})
    with Line(VERSION) as line:
        line.change(PRIMARY, parts, f"make {resource} primary", minor=minor)


def demote(resource: str, minor: int) -> None:
    """Make a device secondary, if it is that of a resource. Blocks.

    Raises:
        InUse: something has it open.
        NodeFailure: the module refused.
    """
    parts = messages.volume(resource) + nest(ROLE, {1: as_flag(value=False)})
    with Line(VERSION) as line:
        line.change(SECONDARY, parts, f"make {resource} secondary", minor=minor)


def declare_equal(minor: int) -> None:
    """Take two connected copies for good and equal. Blocks.

    Raises:
        NodeFailure: the module refused.
    """
    parts = nest(GENERATION, {1: as_flag(value=True)})
    with Line(VERSION) as line:
        line.change(NEW_GENERATION, parts, f"declare device {minor} equal", minor=minor)


def allow_two(connection: Connection, *, allowed: bool) -> None:
    """Say whether both ends may be primary; all else of the connection stays. Blocks.

    Raises:
        NodeFailure: the module refused.
    """
    parts = messages.ends(connection) + nest(NET, {24: as_flag(allowed)})
    with Line(VERSION) as line:
        line.change(CHANGE_CONNECTION, parts, f"change how {connection.resource} is connected")


def disconnect(connection: Connection) -> None:
    """Have a device look for its peer no longer. Blocks.

    Raises:
        NodeFailure: the module refused.
    """
    parts = messages.ends(connection)
    with Line(VERSION) as line:
        line.change(DISCONNECT, parts, f"disconnect {connection.resource}")


def remove(resource: str) -> None:
    """Take a device away, demoted, disconnected and detached; none is fine. Blocks.

    Raises:
        InUse: something has it open.
        NodeFailure: the module refused.
    """
    with Line(VERSION) as line:
        line.change(DOWN, messages.named(resource), f"remove {resource}", fine=(NO_SUCH_RESOURCE,))
