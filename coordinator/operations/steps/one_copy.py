"""A guest that was stopped for a while goes on, with one copy of its disks if need be."""

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial

from common.errors import GntError, Unreachable
from common.model.node import NodeRef
from common.names import NodeId
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors, Parted
from coordinator.disks.holding import Hold, alone
from coordinator.disks.mirrors import mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.edits import note_copies
from coordinator.operations.steps.patience import IN_PASSING_S, patiently
from coordinator.state.rows import Update
from coordinator.state.state import State


def attach_again(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, holds: tuple[Hold, ...], now: float
) -> Iterator[Step]:
    """Have the disks ready on ``home`` for a guest that ran there; who cannot follow falls behind.

    It goes on with the one copy, as it would if it had run all the time.
    """
    if mirrored(guest):
        meeting = _Meeting(cluster, guest, home, holds, now)
        yield Step(f"attach the disks of {guest.name} again", do=meeting.look, edit=meeting.note)


def returning(
    step: Step,
    cluster: Cluster,
    guest: GuestSpec,
    home: NodeRef,
    holds: tuple[Hold, ...],
    now: float,
) -> Step:
    """Return a step that is undone by having the disks ready again, as ``attach_again`` does.

    What is undone next may start the guest, so it is noted by then who falls behind.
    """
    if not holds or not mirrored(guest):
        return step
    meeting = _Meeting(cluster, guest, home, holds, now)
    return dataclasses.replace(step, undo=meeting.look, undo_edit=meeting.note)


class _Meeting:
    """Two nodes that are to have the disks of a guest that ran on one of them."""

    def __init__(
        self,
        cluster: Cluster,
        guest: GuestSpec,
        home: NodeRef,
        holds: tuple[Hold, ...],
        now: float,
    ) -> None:
        self._cluster, self._guest, self._home, self._now = cluster, guest, home, now
        self._own = tuple(each for each in holds if each.node == home)
        self._others = tuple(each for each in holds if each.node != home)
        self._lost: tuple[NodeId, ...] = ()

    async def look(self) -> None:
        """Have them meet, and know afterwards who falls behind."""
        trouble = await self._trouble()
        self._lost = tuple(each.node.uuid for each in self._others) if trouble else ()
        if trouble:
            self._cluster.log(f"{self._guest.name} goes on with one copy of its disks: {trouble}")

    async def _trouble(self) -> GntError | None:
        follow = partial(hold, self._cluster, self._guest, self._others)
        try:
            await patiently(self._cluster, follow, patience_s=IN_PASSING_S, heed_cancel=False)
        except GntError as error:
            return error
        try:
            await hold(self._cluster, self._guest, self._own)
        except Parted as error:
            return error
        return None

    def note(self, state: State) -> Iterable[Update]:
        """Record who falls behind, of those disks of which ``home`` itself has a good copy."""
        config = state.config
        good = (
            disk.id
            for disk in mirrored(self._guest)
            if self._home.uuid not in config.disks[disk.id].behind
        )
        return note_copies(tuple(good), self._now, behind=self._lost)(state)


async def hold_again(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, holds: tuple[Hold, ...]
) -> None:
    """Have the disks held for a guest that ran on ``home``; alone if the others cannot follow.

    That is so if it is noted that they are behind, or ``home`` has never let go of the disks.

    Raises:
        GntError: they cannot, and are not known to be behind.
    """
    try:
        await hold(cluster, guest, holds)
    except GntError:
        if not await _can_do_without(cluster, guest, home):
            raise
        await hold(cluster, guest, alone(home))


async def _can_do_without(cluster: Cluster, guest: GuestSpec, home: NodeRef) -> bool:
    disks = mirrored(guest)
    noted = (cluster.config.disks[disk.id] for disk in disks)
    if all(disk.behind and home.uuid not in disk.behind for disk in noted):
        return bool(disks)
    reports = await cluster.call(Mirrors, home).status(disks=disks)
    return all(report is not None and report.primary for report in reports)


async def take_back(
    cluster: Cluster,
    guest: GuestSpec,
    home: NodeRef,
    holds: tuple[Hold, ...],
    other: NodeRef,
    *,
    is_untouched: bool,
) -> None:
    """Have ``home`` hold the disks again of a guest that was to start on the other node.

    If the two do not reach each other, it goes on alone: provided that it is noted that the other
    copy is behind, and that this one lacks nothing that was written there meanwhile. If the other
    node ``is_untouched``, as it was not asked to start the guest, it need not be asked.

    Raises:
        Parted: it may lack something.
        Unreachable: the other node cannot say.
    """
    try:
        await hold(cluster, guest, holds)
    except (Parted, Unreachable):
        disks = mirrored(guest)
        noted = [cluster.config.disks[disk.id].behind for disk in disks]
        if not noted or not all(other.uuid in b and home.uuid not in b for b in noted):
            raise
        if not is_untouched:
            reports = await cluster.call(Mirrors, other).status(disks=disks)
            if any(report is None or report.has_written_apart for report in reports):
                raise
        await hold(cluster, guest, alone(home))
