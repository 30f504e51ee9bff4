"""The command line of a guest's TPM, which is a process of its own: swtpm.

It is the guest's user, who may open no disk. So it sees the device of its own by a name that is
there for this process alone, in a file system in memory: no other process can open it, and nothing
that the node does with its devices changes whose it is. What the node unmounts is unmounted here,
too, so that nothing is kept busy. Source: swtpm(8) of swtpm 0.7.1.
"""

from typing import NamedTuple

PROGRAM = "swtpm"

_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "slave", "--")

# Where the name is made, whose it is, the numbers of the device, and the command.
_SETUP = """
set -eu
mount -t tmpfs -o size=64k,nr_inodes=8,mode=711,nosuid,noexec none "$1"
mknod -m 600 "$1/state" b "$3" "$4"
chown "$2:$2" "$1/state"
shift 4
exec "$@"
"""


class TpmLine(NamedTuple):
    """What a QEMU is handed for its TPM.

    ``line`` is a connected socket. ``device`` is that of the TPM's disk: a loop device stays what
    it is, whatever is done to it, as long as somebody else has it open, too.
    """

    line: int
    device: int


def emulator(program: str, *, line: int, directory: str) -> tuple[str, ...]:
    """Return what is a TPM until the other end of its line is closed.

    Args:
        program: swtpm.
        line: the end of a connected socket by which QEMU reaches it.
        directory: where it sees its device.
    """
    return (
        *(program, "socket", "--tpm2", "--terminate"),
        *("--ctrl", f"type=unixio,clientfd={line}"),
        *("--tpmstate", f"backend-uri=file://{directory}/state"),
    )


def with_device(
    command: tuple[str, ...], *, directory: str, user: int, device: tuple[int, int]
) -> tuple[str, ...]:
    """Return what runs a command that sees a block device of its own.

    Args:
        command: which gives up its rights first.
        directory: an empty one, where it sees the device.
        user: whose that is.
        device: its major and minor number.
    """
    numbers = map(str, (user, *device))
    return (*_OWN_MOUNTS, "/bin/sh", "-c", _SETUP, "tpm", directory, *numbers, *command)
