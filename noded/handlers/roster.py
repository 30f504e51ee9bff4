"""Calls about whose orders this node takes."""

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.noderpc.roster import HeldRoster, Revocations, Roster, Rosters
from noded.calls.roster import KnownCandidates


class RosterHandlers(Rosters):
    def __init__(self, candidates: KnownCandidates) -> None:
        self._candidates = candidates

    async def update(self, *, roster: Roster, revocations: Revocations) -> HeldRoster:
        _check(roster)
        await self._candidates.update(roster, revocations)
        return self._candidates.held

    async def held(self) -> HeldRoster:
        return self._candidates.held

    async def publish(self, *, roster: Roster) -> None:
        _check(roster)
        await self._candidates.replace(roster)

    async def show(self) -> Roster:
        return replace(self._candidates.roster, revoked=self._candidates.revoked.keys)


def _check(roster: Roster) -> None:
    if not roster.candidates:
        raise InvalidRequest("A roster without candidates would leave this node without master.")
