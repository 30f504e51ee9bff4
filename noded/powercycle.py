"""The power switch, for a node whose disks may all be gone.

Everything it needs is opened and looked up beforehand: no program is started, no file is
opened or read, nothing is allocated that the system would have to fetch.
"""

import ctypes
import os
from pathlib import Path
from typing import NoReturn, Protocol

from common.errors import NodeFailure

SYSRQ = Path("/proc/sysrq-trigger")
RB_AUTOBOOT = 0x01234567  # sys/reboot.h: at once, without sync


class PowerSwitch(Protocol):
    """Reboots this node, or says why it will not."""

    def check(self) -> None:
        """Refuse where the switch would do nothing, or too much.

        Raises:
            NodeFailure: why.
        """

    def cycle(self) -> None:
        """Reboot at once, without writing to disk; does not return if it works."""


class KernelSwitch(PowerSwitch):
    """Asks the kernel, in two ways: the sysrq key, and the system call."""

    def __init__(self, sysrq: Path = SYSRQ) -> None:
        """Open what will be needed.

        Raises:
            NodeFailure: not root, or in a container.
        """
        try:
            # Writing "b" to this file works whatever the sysctl kernel.sysrq says.
            self._sysrq = os.open(sysrq, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NodeFailure(
                f"This node cannot power-cycle itself: cannot open {sysrq}: {error.strerror}."
            ) from error
        self._reboot = ctypes.CDLL(None).reboot  # looked up now, not when it is needed

    def check(self) -> None:
        pass

    def cycle(self) -> None:
        try:
            os.write(self._sysrq, b"b")
        except OSError:
            self._reboot(RB_AUTOBOOT)


class NoSwitch(PowerSwitch):
    """Refuses always."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def check(self) -> None:
        self._refuse()

    def cycle(self) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NodeFailure(self._reason)


def find_switch(*, allowed: bool, root: str) -> PowerSwitch:
    """Return the real switch only to a noded that has a machine of its own.

    Args:
        allowed: the operator, or the service file of a real node, said so.
        root: ``GANTRY_ROOT``; where it is set, nodes share the machine.
    """
    if root:
        return NoSwitch(
            f"This node shares its machine with others (GANTRY_ROOT is {root}), so it does not "
            "reboot it."
        )
    if not allowed:
        return NoSwitch(
            "This noded was started without --allow-powercycle, so it does not reboot its machine."
        )
    try:
        return KernelSwitch()
    except NodeFailure as error:
        return NoSwitch(error.message)
