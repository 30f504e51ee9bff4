"""The device of a logical volume, opened only when it is proven to be that volume's."""

import fcntl
import mmap
import os
import stat
import struct
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from common.names import MiB
from noded.storage.lvm.refusals import not_there
from noded.storage.lvm.volumes import Volume

MIB = 1 << 20
ZERO_OUT = 0x127F  # BLKZEROOUT of linux/fs.h
SYSFS = Path("/sys/dev/block")
LVM = "LVM-"  # and the UUIDs of group and volume: how LVM marks its devices
UUID_LENGTH = 32  # without its hyphens


def mapper_path(volume: Volume) -> str:
    """Return where the volume's device is, by the name that the kernel knows it by."""
    return f"/dev/mapper/{_mapped(volume)}"


def open_device(volume: Volume, access: int, *, uuid: str = "") -> int:
    """Open a volume's device; the descriptor is the caller's.

    Root alone can name devices, but a path may lead to whatever it likes. So what is there is got
    hold of, which opens nothing, then proven to be the kernel's device of that name, made by LVM,
    and opened itself.

    Args:
        volume: it has to be active.
        access: ``O_RDONLY`` or ``O_RDWR``, and ``O_EXCL`` where nobody else may have it.
        uuid: LVM's own of the volume, where it is known.

    Raises:
        NodeFailure: nothing is there, or something else.
    """
    path = mapper_path(volume)
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        why = "it is not attached" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise not_there(volume, "opened", why) from error
    try:
        check_device(volume, os.fstat(found), uuid)
        return os.open(f"/proc/self/fd/{found}", access | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise not_there(volume, "opened", str(error.strerror)) from error
    finally:
        os.close(found)


def zero(descriptor: int, start: MiB, end: MiB) -> None:
    """Have a part of a device read as zeros, by the device's own means where it has some."""
    fcntl.ioctl(descriptor, ZERO_OUT, struct.pack("QQ", start * MIB, (end - start) * MIB))


def size_of(descriptor: int) -> MiB:
    return MiB(os.lseek(descriptor, 0, os.SEEK_END) // MIB)


def check_device(
    volume: Volume, found: os.stat_result, uuid: str = "", *, sysfs: Path = SYSFS
) -> None:
    """Refuse what is not a volume's device, as the kernel tells by the device's numbers.

    Raises:
        NodeFailure: says what it is.
    """
    if not stat.S_ISBLK(found.st_mode):
        raise not_there(volume, "opened", "what is in its place is no block device")
    name, mark = _told(found, sysfs)
    if name != _mapped(volume) or not mark.startswith(LVM):
        raise not_there(volume, "opened", f"the device {name or 'of something else'} is there")
    if uuid and not mark.endswith(uuid.replace("-", "")):
        raise not_there(volume, "opened", "another volume has got its name since")


def find_uuid(volume: Volume, *, sysfs: Path = SYSFS) -> str:
    """Return LVM's UUID of the volume whose device has a volume's name; empty if none has. Blocks.

    Nobody but LVM makes such devices, and no two volumes ever have one UUID.
    """
    try:
        found = Path(mapper_path(volume)).stat()
    except OSError:
        return ""
    name, mark = _told(found, sysfs)
    is_its = name == _mapped(volume) and mark.startswith(LVM)
    return mark[-UUID_LENGTH:] if is_its else ""


def can_be_read(volume: Volume, uuid: str) -> bool:
    """Tell whether what a volume is on answers: its device stays when that fails. Blocks."""
    try:
        descriptor = open_device(volume, os.O_RDONLY | os.O_DIRECT, uuid=uuid)
    except NodeFailure:
        return False
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:  # aligned, as the device wants it
            return os.preadv(descriptor, [page], 0) > 0
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _told(found: os.stat_result, sysfs: Path) -> tuple[str, str]:
    """Return the name and the mark that the device-mapper gives a device; empty if it has none."""
    about = sysfs / f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}" / "dm"
    return _read(about / "name"), _read(about / "uuid")


def _mapped(volume: Volume) -> str:
    """Return the device's name: hyphens are doubled, one alone separates. Source: lvm(8)."""
    return "-".join(part.replace("-", "--") for part in (volume.place.group, volume.place.name))


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""
