"""What is run for DRBD 9 alone: values in, argument lists out.

Source: drbdsetup-9.0(8), drbdmeta-9.0(8) of drbd-utils 9.22.
"""

from noded.storage.drbd.commands import Argv
from noded.storage.drbd.module import Connection

PEERS = 1  # for so many others there is room in metadata


def net_options(connection: Connection, *options: str) -> Argv:
    return ("drbdsetup", "net-options", *_peer(connection), *options)


def disconnect(connection: Connection) -> Argv:
    """Return what stops a connection; what it has noted of the peer can be seen afterwards."""
    return ("drbdsetup", "disconnect", *_peer(connection))


def primary(resource: str, *, force: bool) -> Argv:
    return ("drbdsetup", "primary", resource, *(["--force"] if force else []))


def secondary(resource: str) -> Argv:
    return ("drbdsetup", "secondary", resource)


def declare_equal(minor: int) -> Argv:
    return ("drbdsetup", "new-current-uuid", "--clear-bitmap", str(minor))


def _peer(connection: Connection) -> tuple[str, str]:
    return connection.resource, str(connection.peer_number)
