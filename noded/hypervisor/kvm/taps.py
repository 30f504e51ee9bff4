"""Taps as QEMU gets them: descriptors that noded opened."""

import errno
import socket

from common.errors import NodeFailure
from noded.network.tuntap import open_tap


def take_tap(name: str) -> int:
    """Open a tap that exists; the kernel would make one, plugged into nothing.

    Raises:
        NodeFailure: there is no such device, or another guest has it.
    """
    try:
        socket.if_nametoindex(name)
    except OSError as error:
        raise NodeFailure(f"Its network device {name} is not there.", tap=name) from error
    try:
        return open_tap(name)
    except OSError as error:
        in_use = error.errno == errno.EBUSY
        reason = "another process uses it" if in_use else error.strerror
        raise NodeFailure(f"Its network device {name} cannot be opened: {reason}.") from error
