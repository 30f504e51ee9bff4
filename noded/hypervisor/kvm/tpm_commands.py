"""The command line of a guest's TPM, which is a process of its own: swtpm.

It is the guest's user, who may open no disk. So it sees the device of its own by a name that is
there for this process alone, in its root directory: no other process can open it, and nothing
that the node does with its devices changes whose it is. Source: swtpm(8) of swtpm 0.7.1.
"""

from typing import NamedTuple

PROGRAM = "swtpm"


class TpmLine(NamedTuple):
    """What a QEMU is handed for its TPM.

    ``line`` is a connected socket. ``device`` is that of the TPM's disk: a loop device stays what
    it is, whatever is done to it, as long as somebody else has it open, too.
    """

    line: int
    device: int


def emulator(program: str, *, line: int, directory: str) -> tuple[str, ...]:
    """Return what is a TPM until QEMU ends, once that has come up.

    Args:
        program: swtpm.
        line: the end of a connected socket by which QEMU reaches it.
        directory: where it sees its device, as ``state``.
    """
    return (
        *(program, "socket", "--tpm2", "--terminate"),
        *("--ctrl", f"type=unixio,clientfd={line}"),
        *("--tpmstate", f"backend-uri=file://{directory}/state"),
    )
