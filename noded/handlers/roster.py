"""Calls about whose orders this node takes."""

from common.errors import InvalidRequest
from common.noderpc.roster import Roster, Rosters
from noded.calls.roster import KnownCandidates


class RosterHandlers(Rosters):
    def __init__(self, candidates: KnownCandidates) -> None:
        self._candidates = candidates

    async def publish(self, *, roster: Roster) -> None:
        if not roster.candidates:
            raise InvalidRequest(
                "A roster without candidates would leave this node without master."
            )
        await self._candidates.replace(roster)

    async def show(self) -> Roster:
        return self._candidates.roster
