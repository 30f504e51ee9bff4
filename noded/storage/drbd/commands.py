"""What is run for DRBD of any version: values in, argument lists out.

Source: drbdsetup-8.4(8), drbdsetup-9.0(8), drbdmeta-8.4(8), drbdmeta-9.0(8) of drbd-utils 9.22.
"""

import shlex

from common.model.disk_parameters import DrbdParameters
from common.names import MiB

Argv = tuple[str, ...]

_BARRIERS = {"b": "--disk-barrier=no", "f": "--disk-flushes=no", "d": "--disk-drain=no"}


def meta(minor: int, metadata: str, path: str, *words: str) -> Argv:
    """Return what does something with a volume of metadata, of a format."""
    return ("drbdmeta", str(minor), metadata, path, "flex-external", *words)


def create_meta(minor: int, metadata: str, path: str, *words: str) -> Argv:
    """Return what writes metadata in a format, and asks nobody."""
    program, *rest = meta(minor, metadata, path, "create-md", *words)
    return (program, "--force", *rest)


def apply_log(minor: int, metadata: str, path: str) -> Argv:
    """Bring the bitmap up to date after a crash; the module refuses to attach it before."""
    return meta(minor, metadata, path, "apply-al")


def attach(
    minor: int, data: str, volume: str, size: MiB, parameters: DrbdParameters, *options: str
) -> Argv:
    """Return what attaches two volumes; failing ones are given up, for the peer's."""
    return (
        "drbdsetup", "attach", str(minor), data, volume, "flexible", f"--size={size}M",
        "--on-io-error=detach", *options,
        *(_BARRIERS[letter] for letter in parameters.disk_barriers if letter in _BARRIERS),
        *(["--md-flushes=no"] if parameters.meta_barriers else []),
        *shlex.split(parameters.disk_custom),
    )  # fmt: skip


def custom_net_options(parameters: DrbdParameters) -> tuple[str, ...]:
    """Return what the operator has set for connections; empty, as a rule."""
    return tuple(shlex.split(parameters.net_custom))


def resize(minor: int, size: MiB) -> Argv:
    """Return what makes a device larger; what is added are zeros on both sides, so equal."""
    return ("drbdsetup", "resize", str(minor), f"--size={size}M", "--assume-clean")


def detach(minor: int) -> Argv:
    """Return what takes a device's volumes.

    It waits in the kernel for a disk that hangs, with all who ask the module for anything; a
    program that waits there can be killed, and a thread of ours cannot.
    """
    return ("drbdsetup", "detach", str(minor))
