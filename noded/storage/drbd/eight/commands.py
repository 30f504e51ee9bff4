"""What is run for DRBD: values in, argument lists out.

Source: drbdsetup-8.4(8), drbdmeta-8.4(8) of drbd-utils 9.22.
"""

import shlex
from collections.abc import Iterator

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd.module import Connection, Endpoint

Argv = tuple[str, ...]

_BARRIERS = {"b": "--disk-barrier=no", "f": "--disk-flushes=no", "d": "--disk-drain=no"}


def show_meta(minor: int, path: str) -> Argv:
    return ("drbdmeta", str(minor), "v08", path, "flex-external", "get-gi")


def create_meta(minor: int, path: str) -> Argv:
    return ("drbdmeta", "--force", str(minor), "v08", path, "flex-external", "create-md")


def apply_log(minor: int, path: str) -> Argv:
    """Bring the bitmap up to date after a crash; the module refuses to attach it before."""
    return ("drbdmeta", str(minor), "v08", path, "flex-external", "apply-al")


def attach(minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters) -> Argv:
    """Return what attaches two volumes.

    Failing ones are given up: the guest goes on with the peer's. With “resource-only”, a copy that
    cannot ask its peer is not taken for the newest; nobody is fenced by it, as no helper is run.
    """
    return (
        "drbdsetup", "attach", str(minor), data, meta, "flexible", f"--size={size}M",
        "--on-io-error=detach", "--fencing=resource-only",
        *(_BARRIERS[letter] for letter in parameters.disk_barriers if letter in _BARRIERS),
        *(["--md-flushes=no"] if parameters.meta_barriers else []),
        *_speed(parameters),
        *shlex.split(parameters.disk_custom),
    )  # fmt: skip


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


def custom_net_options(parameters: DrbdParameters) -> tuple[str, ...]:
    """Return what the operator has set for connections; empty, as a rule."""
    return tuple(shlex.split(parameters.net_custom))


def disconnect(connection: Connection) -> Argv:
    return ("drbdsetup", "disconnect", *_ends(connection))


def primary(minor: int, *, force: bool) -> Argv:
    return ("drbdsetup", "primary", str(minor), *(["--force"] if force else []))


def secondary(minor: int) -> Argv:
    return ("drbdsetup", "secondary", str(minor))


def detach(minor: int) -> Argv:
    return ("drbdsetup", "detach", str(minor))


def resize(minor: int, size: MiB) -> Argv:
    """Return what makes a device larger; what is added are zeros on both sides, so equal."""
    return ("drbdsetup", "resize", str(minor), f"--size={size}M", "--assume-clean")


def declare_equal(minor: int) -> Argv:
    return ("drbdsetup", "new-current-uuid", "--clear-bitmap", str(minor))


def _ends(connection: Connection) -> tuple[str, str]:
    return _address(connection.own), _address(connection.peer)


def _address(end: Endpoint) -> str:
    if ":" in end.address:
        return f"ipv6:[{end.address}]:{end.port}"
    return f"ipv4:{end.address}:{end.port}"
