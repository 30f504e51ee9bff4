"""What is wrong with mirrored disks, which command mends it, and which copies are behind."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from common.model.disk import Disk
from common.model.node import Node
from common.names import DiskId, InstanceName, NodeId
from common.noderpc.mirrors import CopyState, Link, MirrorReport
from coordinator.disks.mirrors import in_words, is_split, is_whole, owed, progress

Told = Mapping[DiskId, MirrorReport | None]


class MirrorState(StrEnum):
    """How the disks of an instance are, the best first."""

    WHOLE = "whole"
    AT_REST = "at-rest"  # neither node has them attached
    COPYING = "copying"  # one copy is becoming good
    UNKNOWN = "unknown"  # a node does not answer
    PARTED = "parted"  # both nodes are there, and do not talk about it
    DEGRADED = "degraded"  # there is one copy only
    SPLIT = "split"  # both copies were written to apart


class Side(NamedTuple):
    """One of an instance's two nodes, and what it told of its disks; None if nothing."""

    node: Node
    told: Told | None


class Finding(NamedTuple):
    """``text`` goes on from “disk 0 ”; it is empty where nothing is wrong.

    ``is_faulty``: a copy has lost what is below it.
    """

    state: MirrorState
    text: str = ""
    is_faulty: bool = False


class Mark(NamedTuple):
    """What is to be noted of a disk, which was as ``serial_no`` says when it was looked at."""

    disk: DiskId
    serial_no: int
    behind: tuple[NodeId, ...] = ()
    good: tuple[NodeId, ...] = ()


def diagnose(name: InstanceName, disk: Disk, home: Side, second: Side) -> Finding:
    """Conclude how a disk is from what both its nodes told, the primary one first."""
    sides = (home, second)
    reports = [side.told.get(disk.uuid) if side.told is not None else None for side in sides]
    told = [
        f"on {side.node.name} it {in_words(report) if side.told is not None else 'is not known'}"
        for side, report in zip(sides, reports, strict=True)
    ]
    both = ", ".join(told)
    if is_split(reports):
        return Finding(
            MirrorState.SPLIT,
            f"was written to on both nodes apart (split brain): {_histories(sides, reports)}. Say "
            f"whose writes are given up: “gnt-instance discard-copy --node NODE {name}”",
        )
    away = [side.node for side in sides if side.told is None]
    if any(node.offline for node in away):
        return Finding(
            MirrorState.DEGRADED,
            f"has one copy only, as {away[0].name} is marked offline; “gnt-instance replace-disks "
            f"--new-secondary NODE {name}” makes another one",
        )
    if away:
        return Finding(MirrorState.UNKNOWN, f"may have one copy only: {both}")
    if not any(reports):
        return Finding(MirrorState.AT_REST, _old(name, disk, sides))
    if any(report and report.own is CopyState.NONE for report in reports):
        return Finding(
            MirrorState.DEGRADED,
            f"has lost a volume: {both}; “gnt-instance replace-disks --auto {name}” makes it anew",
            is_faulty=True,
        )
    if all(report and report.link is Link.CONNECTED for report in reports):
        if line := progress(reports[:1]):
            return Finding(MirrorState.COPYING, f"is being copied: {line.partition(': ')[2]}")
        return Finding(MirrorState.WHOLE) if is_whole(reports[0]) else _parted(name, both)
    if line := owed(reports[:1]):
        both = f"{both}, and {line.partition(': ')[2]} are on the first one only"
    return _parted(name, both)


def _parted(name: InstanceName, both: str) -> Finding:
    text = f"is not mirrored: {both}; “gnt-instance activate-disks {name}” connects its copies"
    return Finding(MirrorState.PARTED, text)


def _old(name: InstanceName, disk: Disk, sides: Sequence[Side]) -> str:
    old = [side.node.name for side in sides if side.node.uuid in disk.behind]
    if not old:
        return ""
    return (
        f"is behind on {' and '.join(old)}; “gnt-instance activate-disks --wait-for-sync {name}” "
        "makes its copies equal"
    )


def _histories(sides: Sequence[Side], reports: Sequence[MirrorReport | None]) -> str:
    lines = []
    for side, report in zip(sides, reports, strict=True):
        if report is None:
            lines.append(f"{side.node.name} does not say what it has")
            continue
        use = "in use" if report.primary else "not in use"
        wrote = f"{report.behind_kib} KiB were written apart" if report.behind_kib else "is there"
        lines.append(
            f"{side.node.name} has generation {next(iter(report.generations), '?')}, {use}; {wrote}"
        )
    return "; ".join(lines)


def mark(disk: Disk, home: Side, second: Side) -> Mark | None:
    """Conclude which copies are behind, and which are not any more; None if that is noted so."""
    own = home.told.get(disk.uuid) if home.told is not None else None
    other = second.told.get(disk.uuid) if second.told is not None else None
    nodes = (home.node.uuid, second.node.uuid)
    if is_whole(own):
        return Mark(disk.uuid, disk.serial_no, good=nodes) if disk.behind else None
    behind = tuple(
        node
        for node, peer in zip(nodes, (other, own), strict=True)
        if node not in disk.behind and _lags(peer)
    )
    return Mark(disk.uuid, disk.serial_no, behind=behind) if behind else None


def _lags(peer: MirrorReport | None) -> bool:
    """Tell whether a copy lacks what is written on ``peer``, the other node."""
    if peer is None or not peer.primary or peer.own is not CopyState.UP_TO_DATE:
        return False
    return peer.link is not Link.CONNECTED or peer.peer is not CopyState.UP_TO_DATE


def worst(findings: Sequence[Finding]) -> MirrorState:
    """Return how the worst disk is."""
    order = list(MirrorState)
    return max((finding.state for finding in findings), key=order.index)
