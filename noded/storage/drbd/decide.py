"""What may be done with a device of DRBD's, going by how it is."""

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport, Parted
from noded.storage.drbd.mirror import OURS, Mirror
from noded.storage.drbd.module import Device
from noded.storage.lvm.device import mapper_path

GOOD_ALONE = (CopyState.UP_TO_DATE, CopyState.CONSISTENT)


def serves(device: Device, mirror: Mirror) -> bool:
    """Tell whether a device with the disk's name is the disk's: its number, and its volumes."""
    places = tuple(map(mapper_path, mirror.volumes))
    return device.minor == mirror.minor and device.volumes in (None, places)


def check_removable(device: Device, mirror: Mirror) -> None:
    """Refuse to take away a device that is in a disk's place, unless it is a remnant of ours.

    Raises:
        Conflict: it is somebody else's, or something may be done with it.
    """
    what = f"The disk {mirror.name} cannot be attached: its device /dev/drbd{mirror.minor}"
    if not device.resource.startswith(OURS):
        raise Conflict(
            f"{what} is that of {device.resource}, which is none of ours; give that one another "
            "number, or take it down.",
            resource=device.resource,
            minor=device.minor,
        )
    if device.report.primary or device.report.link is Link.CONNECTED:
        raise Conflict(
            f"{what} is in use: {device.resource} has /dev/drbd{device.minor}, and is "
            f"{'primary' if device.report.primary else 'connected'}.",
            resource=device.resource,
            minor=device.minor,
        )


def check_forgotten(device: Device) -> None:
    """Refuse to take away what is said to be nobody's while something uses it.

    Raises:
        NodeFailure: says what does.
    """
    if device.report.primary or device.report.link is Link.CONNECTED:
        use = "primary" if device.report.primary else "connected to another copy"
        raise NodeFailure(
            f"/dev/drbd{device.minor} ({device.resource}) is in use: it is {use}.",
            resource=device.resource,
            minor=device.minor,
        )


def check_promotion(report: MirrorReport, name: str, *, alone: bool) -> bool:
    """Refuse to let a guest write where it might miss what was written before.

    Args:
        report: how the device is.
        name: of the disk.
        alone: it is noted that the other copy is behind, and need not be asked.

    Returns:
        whether the module has to be forced, as it cannot ask the other copy.

    Raises:
        NodeFailure: neither copy is known to be the newest.
        Parted: the other one cannot be asked.
    """
    if report.link is Link.CONNECTED:
        if CopyState.UP_TO_DATE in (report.own, report.peer):
            return False
        raise NodeFailure(
            f"The disk {name} cannot be used: neither copy is known to be good; this one is "
            f"{report.own}, the other one {report.peer}.",
            own=report.own,
            peer=report.peer,
        )
    if not alone:
        raise Parted(
            f"The disk {name} cannot be used: it is not connected to its other copy, so nobody "
            f"knows whether this one, {report.own}, is the newest.",
            own=report.own,
        )
    if report.own not in GOOD_ALONE:
        raise NodeFailure(
            f"The disk {name} cannot be used without its other copy: this one is {report.own}.",
            own=report.own,
        )
    return True


def check_growth(report: MirrorReport, name: str) -> None:
    """Refuse to grow what DRBD would not, before its volumes are larger than it.

    Raises:
        NodeFailure: the copies are parted, or not equal yet.
    """
    if report.link is not Link.CONNECTED:
        raise NodeFailure(
            f"The disk {name} cannot grow: it is not connected to its other copy, which has to "
            "grow as well."
        )
    if report.copying is not Copying.NOTHING:
        raise NodeFailure(
            f"The disk {name} cannot grow while it is copied, {report.percent:.1f} % by now; wait "
            "until both copies are equal."
        )


def is_split(report: MirrorReport) -> MirrorReport:
    """Mark a device that gave up its peer though nobody told it to, after it was written to."""
    return replace(report, split=report.link is Link.NONE and report.has_written_apart)
