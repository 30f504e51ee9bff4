"""Parameters of disks (``diskparams``): one declaration for each template.

Names, meanings and defaults are Ganeti's, with dashes, unless a comment says that they are ours.
They are set for the cluster and refined for a group; what belongs to one disk, such as its volume
group, is in its backing. What they mean is in the driver of the template.

Source: gnt-cluster(8) and gnt-group(8) of Ganeti 3.0; bounds of DRBD: drbdsetup(8) of 8.4.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from common.errors import InvalidRequest
from common.messages import Order
from common.model.template import DiskTemplate

Stripes = Annotated[int, Meta(ge=1, le=128)]  # LVM's own limit
Rate = Annotated[int, Meta(ge=1, le=2**22)]  # KiB/s
Options = Annotated[str, Meta(max_length=1024)]

_VOLUME = re.compile(r"([A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126})?")  # lvm(8), without its “--”
_BARRIERS = re.compile(r"n|(?=[bfd])b?f?d?")
_WORD = re.compile(r"[A-Za-z0-9_.-]*")


class Reach(StrEnum):
    """How a guest reaches a disk. QEMU gets a descriptor, so there is one way."""

    KERNEL = "kernelspace"


class Protocol(StrEnum):
    """When a write counts as done: sent (A), received (B), or on both disks (C)."""

    A = "A"
    B = "B"
    C = "C"


class ImageFormat(StrEnum):
    """What a file is to a guest that has it as a disk."""

    RAW = "raw"  # byte for byte what is on the disk
    QCOW2 = "qcow2"


class NoParameters(Order):
    """Those of templates that have none."""


class FileParameters(Order, rename="kebab"):
    """What new files are."""

    format: ImageFormat = ImageFormat.RAW  # ours


class PlainParameters(Order, rename="kebab"):
    """How logical volumes are laid out."""

    stripes: Stripes = 1
    stripe_size: Annotated[int, Meta(ge=0, le=2**20)] = 0  # ours; KiB; 0: LVM's own
    thin_pool: str = ""  # ours; the pool of the volume group to make them in; none: no thin ones

    def __post_init__(self) -> None:
        if self.stripe_size and self.stripe_size.bit_count() != 1:
            raise ValueError(f"stripe-size is a power of two, not {self.stripe_size}")
        _check_volume("thin-pool", self.thin_pool)


class DrbdParameters(Order, rename="kebab"):
    """How pairs are laid out, and how they replicate; times are in tenths of a second."""

    c_delay_target: Annotated[int, Meta(ge=1, le=100)] = 1
    c_fill_target: Annotated[int, Meta(ge=0, le=2**20)] = 0  # sectors
    c_max_rate: Annotated[int, Meta(ge=250, le=2**22)] = 61440  # KiB/s
    c_min_rate: Annotated[int, Meta(ge=0, le=2**22)] = 4096  # KiB/s
    c_plan_ahead: Annotated[int, Meta(ge=0, le=300)] = 20
    data_stripes: Stripes = 1
    disk_barriers: str = "n"  # n: all are on; else which are switched off
    disk_custom: Options = ""
    dynamic_resync: bool = False
    meta_barriers: bool = False  # True: they are switched off
    meta_stripes: Stripes = 1
    metavg: str = ""  # volume group of the metadata; none: that of the data
    net_custom: Options = ""
    protocol: Protocol = Protocol.C
    resync_rate: Rate = 61440  # KiB/s, where it is not dynamic

    def __post_init__(self) -> None:
        if not _BARRIERS.fullmatch("".join(sorted(self.disk_barriers, key="bfd".find))):
            raise ValueError(
                f"disk-barriers is “n”, or letters of “bfd” to switch off, not "
                f"“{self.disk_barriers}”"
            )
        _check_volume("metavg", self.metavg)


class RbdParameters(Order, rename="kebab"):
    """Where in a Ceph cluster images are, and as whom it is spoken to."""

    access: Reach = Reach.KERNEL
    pool: str = "rbd"
    user_id: str = ""  # none: as Ceph's configuration says

    def __post_init__(self) -> None:
        for name, word in (("pool", self.pool), ("user-id", self.user_id)):
            if not _WORD.fullmatch(word) or word.startswith("-"):
                raise ValueError(f"{name} cannot be “{word}”: letters, digits and “_.-”")
        if not self.pool:
            raise ValueError("pool is the name of a pool of the Ceph cluster")


class ExtParameters(Order, rename="kebab"):
    """How disks of external providers are reached; the providers' own are in their backings."""

    access: Reach = Reach.KERNEL


class GlusterParameters(Order, rename="kebab"):
    """Which volume has to be mounted where nodes have their directory for it."""

    access: Reach = Reach.KERNEL
    host: Annotated[str, Meta(max_length=253)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=2**16 - 1)] = 24007
    volume: str = "gv0"

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.volume) or not self.volume:
            raise ValueError(f"volume cannot be “{self.volume}”: letters, digits and “_.-”")


_DECLARED: Mapping[DiskTemplate, type[Order]] = {
    DiskTemplate.FILE: FileParameters,
    DiskTemplate.SHAREDFILE: FileParameters,
    DiskTemplate.PLAIN: PlainParameters,
    DiskTemplate.DRBD: DrbdParameters,
    DiskTemplate.RBD: RbdParameters,
    DiskTemplate.EXT: ExtParameters,
    DiskTemplate.GLUSTER: GlusterParameters,
}

DISK_PARAMETERS: Mapping[str, type[Order]] = {
    template: _DECLARED.get(template, NoParameters) for template in DiskTemplate
}


def check_template(name: str) -> None:
    """Refuse a template that nobody knows.

    Raises:
        InvalidRequest: tells which there are.
    """
    if name not in DISK_PARAMETERS:
        known = ", ".join(DISK_PARAMETERS)
        raise InvalidRequest(f"There is no disk template “{name}”; known are {known}.")


def _check_volume(name: str, value: str) -> None:
    if not _VOLUME.fullmatch(value):
        raise ValueError(f"{name} cannot be “{value}”: it is no name that LVM takes")
