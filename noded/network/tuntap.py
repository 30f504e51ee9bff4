"""Make a tap device that stays when nobody holds it open."""

import fcntl
import os
import struct

# Source: linux/if_tun.h; struct ifreq is a name of 16 bytes, then a union of 24.
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_IFF_VNET_HDR = 0x4000
_IFF_TUN_EXCL = 0x8000


def make_tap(name: str) -> None:
    """Make the persistent tap ``name``, down and plugged into nothing.

    With the header that lets a guest leave checksums and segmenting to the host, as QEMU asks
    for when it opens the tap.

    Raises:
        OSError: EBUSY if the name is taken, EPERM without CAP_NET_ADMIN.
    """
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | _IFF_TUN_EXCL
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
    finally:
        os.close(descriptor)
