"""Calls by which a master is confirmed."""

from collections.abc import Awaitable, Callable

from common.errors import InvalidRequest
from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName, check_name
from common.noderpc.mastership import WATCH_S, Ballot, Mastership
from noded.calls.fence import EpochFence

Look = Callable[[], Awaitable[tuple[Stamp | None, JobId | None]]]
"""Tells how far this node's replica is; fails rather than leave a newer state unmentioned."""


class MastershipHandlers(Mastership):
    def __init__(self, fence: EpochFence, look: Look) -> None:
        self._fence = fence
        self._look = look

    async def vote(self) -> Ballot:
        stamp, newest_job = await self._look()
        grant = self._fence.grant
        return Ballot(
            master=grant.named,
            epoch=grant.epoch,
            granted_to=grant.master if grant.obeyed else None,
            stamp=stamp,
            newest_job=newest_job,
        )

    async def grant(self, *, epoch: Epoch, master: NodeName, only_if_named: bool = False) -> None:
        check_name(master, "node")
        if epoch < 1:
            raise InvalidRequest(f"Epochs begin with 1; {epoch} is none.")
        await self._fence.advance(epoch, master, only_if_named=only_if_named)

    async def watch(self, *, epoch: Epoch) -> Ballot:
        await self._fence.granted_after(epoch, WATCH_S)
        return await self.vote()
