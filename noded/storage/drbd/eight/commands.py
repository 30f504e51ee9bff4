"""What is run for DRBD 8.4 alone: values in, argument lists out.

Source: drbdsetup-8.4(8) of drbd-utils 9.22.
"""

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands
from noded.storage.drbd.commands import Argv
from noded.storage.drbd.eight import speed
from noded.storage.drbd.module import Connection, Endpoint


def attach(minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters) -> Argv:
    """Return what attaches two volumes.

    With “resource-only”, a copy that cannot ask its peer is not taken for the newest; nobody is
    fenced by it, as no helper is run.
    """
    options = ("--fencing=resource-only", *speed.options(parameters))
    return commands.attach(minor, data, meta, size, parameters, *options)


def net_options(connection: Connection, *options: str) -> Argv:
    return ("drbdsetup", "net-options", *_ends(connection), *options)


def _ends(connection: Connection) -> tuple[str, str]:
    return _address(connection.own), _address(connection.peer)


def _address(end: Endpoint) -> str:
    if ":" in end.address:
        return f"ipv6:[{end.address}]:{end.port}"
    return f"ipv4:{end.address}:{end.port}"
