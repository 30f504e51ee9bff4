"""Make tap devices that stay when nobody holds them open, and open them for guests."""

import fcntl
import os
import struct

# Source: linux/if_tun.h; struct ifreq is a name of 16 bytes, then a union of 24.
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_IFF_MULTI_QUEUE = 0x0100
_IFF_VNET_HDR = 0x4000
_IFF_TUN_EXCL = 0x8000


def make_tap(name: str, *, several_queues: bool = False) -> None:
    """Make the persistent tap ``name``, down and plugged into nothing.

    One with several queues can be opened as often, and by anybody; any other only once.

    With the header that lets a guest leave checksums and segmenting to the host, as QEMU asks
    for when it opens the tap.

    Raises:
        OSError: EBUSY if the name is taken, EPERM without CAP_NET_ADMIN.
    """
    descriptor = _attach(name, _IFF_TUN_EXCL | _queues(several_queues))
    try:
        fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
    finally:
        os.close(descriptor)


def open_tap(name: str, *, several_queues: bool = False) -> int:
    """Open the tap ``name``, which exists, for one queue; the descriptor is the caller's.

    Raises:
        OSError: EBUSY if somebody has it open, EPERM without CAP_NET_ADMIN.
    """
    return _attach(name, _queues(several_queues))


def _queues(several: bool) -> int:
    return _IFF_MULTI_QUEUE if several else 0


def _attach(name: str, more_flags: int) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | more_flags
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
