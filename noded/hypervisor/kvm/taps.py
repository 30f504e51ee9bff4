"""Taps as QEMU gets them: descriptors that noded opened."""

import errno
import os
import socket

from common.errors import NodeFailure
from noded.hypervisor.kvm.nic_devices import Tap
from noded.network.tuntap import open_tap

_VHOST = "/dev/vhost-net"


def take_tap(name: str, *, queues: int = 1, vhost: bool = False) -> Tap:
    """Open a tap that exists; the kernel would make one, plugged into nothing.

    Args:
        name: of the device.
        queues: how many it is opened for.
        vhost: whether the kernel copies its packets, instead of QEMU.

    Raises:
        NodeFailure: there is no such device, or another guest has it; or the kernel has no vhost.
    """
    try:
        socket.if_nametoindex(name)
    except OSError as error:
        raise NodeFailure(f"Its network device {name} is not there.", tap=name) from error
    opened: list[int] = []
    try:
        opened.extend(_open_queue(name, several=queues > 1) for _ in range(queues))
        opened.extend(_open_vhost() for _ in range(queues if vhost else 0))
    except NodeFailure:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return Tap(tuple(opened[:queues]), tuple(opened[queues:]))


def _open_queue(name: str, *, several: bool) -> int:
    try:
        return open_tap(name, several_queues=several)
    except OSError as error:
        in_use = error.errno == errno.EBUSY
        reason = "another process uses it" if in_use else error.strerror
        raise NodeFailure(f"Its network device {name} cannot be opened: {reason}.") from error


def _open_vhost() -> int:
    try:
        return os.open(_VHOST, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NodeFailure(
            f"It wants vhost_net, and {_VHOST} cannot be opened: {error.strerror}; load the "
            "module vhost_net, or set vhost_net to no.",
            path=_VHOST,
        ) from error
