"""What is run for DRBD 8.4 alone: values in, argument lists out.

Source: drbdsetup-8.4(8) of drbd-utils 9.22.
"""

from collections.abc import Iterator

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands
from noded.storage.drbd.commands import Argv
from noded.storage.drbd.module import Connection, Endpoint


def attach(minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters) -> Argv:
    """Return what attaches two volumes.

    With “resource-only”, a copy that cannot ask its peer is not taken for the newest; nobody is
    fenced by it, as no helper is run.
    """
    options = ("--fencing=resource-only", *_speed(parameters))
    return commands.attach(minor, data, meta, size, parameters, *options)


def _speed(parameters: DrbdParameters) -> Iterator[str]:
    if not parameters.dynamic_resync:
        yield "--c-plan-ahead=0"
        yield f"--resync-rate={parameters.resync_rate}K"
        return
    yield f"--c-plan-ahead={parameters.c_plan_ahead}"
    yield f"--c-fill-target={parameters.c_fill_target}s"
    yield f"--c-delay-target={parameters.c_delay_target}"
    yield f"--c-max-rate={parameters.c_max_rate}K"
    yield f"--c-min-rate={parameters.c_min_rate}K"


def net_options(connection: Connection, *options: str) -> Argv:
    return ("drbdsetup", "net-options", *_ends(connection), *options)


def disconnect(connection: Connection) -> Argv:
    return ("drbdsetup", "disconnect", *_ends(connection))


def primary(minor: int, *, force: bool) -> Argv:
    return ("drbdsetup", "primary", str(minor), *(["--force"] if force else []))


def secondary(minor: int) -> Argv:
    return ("drbdsetup", "secondary", str(minor))


def _ends(connection: Connection) -> tuple[str, str]:
    return _address(connection.own), _address(connection.peer)


def _address(end: Endpoint) -> str:
    if ":" in end.address:
        return f"ipv6:[{end.address}]:{end.port}"
    return f"ipv4:{end.address}:{end.port}"
