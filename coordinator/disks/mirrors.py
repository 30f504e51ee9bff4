"""What the two ends of mirrored disks say of themselves, in words and for decisions."""

from collections.abc import Iterable, Sequence

from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Copying, CopyState, Link, MirrorReport

Reports = Sequence[MirrorReport | None]

_OF_NO_USE = (CopyState.NONE, CopyState.INCONSISTENT)


def generation_of(version: str) -> str:
    """Return which DRBD a module is, by its version: “8”, as Linux has it, or “9”."""
    return version.partition(".")[0]


def mirrored(guest: GuestSpec) -> tuple[DiskSpec, ...]:
    """Return those disks of a guest that two nodes have."""
    return tuple(disk for disk in guest.disks if disk.ends)


def is_whole(report: MirrorReport | None) -> bool:
    """Tell whether both copies have all that was written, and go on getting it."""
    return (
        report is not None
        and report.link is Link.CONNECTED
        and report.own is CopyState.UP_TO_DATE
        and report.peer is CopyState.UP_TO_DATE
    )


def is_linked(report: MirrorReport | None) -> bool:
    """Tell whether a node reaches the other one."""
    return report is not None and report.link is Link.CONNECTED


def is_split(reports: Reports) -> bool:
    """Tell whether both copies of a disk have what the other one lacks, by what both ends say.

    An end that gave up its peer and was written to may have been told so by hand; if the other end
    was not written to, it only lacks something.
    """
    wrote = all(report is None or report.has_written_apart for report in reports)
    return wrote and any(report is not None and report.split for report in reports)


def is_usable(report: MirrorReport | None) -> bool:
    """Tell whether a copy is of one time at least, though maybe of an old one."""
    return report is None or report.own not in _OF_NO_USE


def in_words(report: MirrorReport | None) -> str:
    """Say how one end of a disk is: “is inconsistent (43.5 % in sync), and connected”."""
    if report is None:
        return "is not set up there"
    if report.split:
        return "was written to apart from the other one (split brain)"
    share = f" ({report.percent:.1f} % in sync)" if report.copying in _COPYING else ""
    return f"is {_COPY[report.own]}{share}, and {_LINK[report.link]}"


_COPYING = (Copying.TO_PEER, Copying.FROM_PEER)
_COPY = {
    CopyState.NONE: "without its volume",
    CopyState.UNKNOWN: "in an unknown state",
    CopyState.INCONSISTENT: "inconsistent",
    CopyState.OUTDATED: "outdated",
    CopyState.CONSISTENT: "as it was when it last saw the other one",
    CopyState.UP_TO_DATE: "up to date",
}
_LINK = {
    Link.NONE: "not connected",
    Link.CONNECTING: "not reaching the other node",
    Link.CONNECTED: "connected",
}


def progress(reports: Reports) -> str:
    """Say how far the copying of disks is; nothing if none is being copied."""
    lines = (
        f"disk {index}: {_share(report)}"
        for index, report in enumerate(reports)
        if report is not None and report.copying in _COPYING
    )
    return "; ".join(lines)


def owed(reports: Reports) -> str:
    """Say how much is written on one copy only; nothing if none is."""
    lines = (
        f"disk {index}: {report.behind_kib} KiB"
        for index, report in enumerate(reports)
        if report is not None and report.behind_kib
    )
    return "; ".join(lines)


def _share(report: MirrorReport) -> str:
    told = f"{report.percent:.1f} % in sync"
    if report.paused:
        return f"{told}, paused"
    if not report.rate_kib:
        return told
    left_s = report.behind_kib / report.rate_kib
    return f"{told}, {report.rate_kib / 1024:.1f} MiB/s, {_duration(left_s)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def first_trouble(reports: Reports) -> str:
    """Say what keeps copies from becoming equal by themselves; nothing if they can."""
    for index, report in enumerate(reports):
        if report is None or report.split or CopyState.NONE in (report.own, report.peer):
            return f"disk {index} {in_words(report)}"
    return ""


def are_whole(reports: Iterable[MirrorReport | None]) -> bool:
    return all(is_whole(report) for report in reports)
