"""Calls about a member's certificate, and its leaving."""

import asyncio

from common.errors import Conflict
from common.names import KeyId, NodeName, check_name
from common.noderpc.confd import Confd
from common.noderpc.identity import Identity, Request, Who
from common.noderpc.instances import Instances
from common.noderpc.replica import Replica
from common.noderpc.rest_users import RestUsers
from noded.calls.fence import EpochFence
from noded.calls.roster import KnownCandidates
from noded.handlers.files import FileHandlers
from noded.identity.store import IdentityStore


class IdentityHandlers(Identity):
    def __init__(
        self,
        identity: IdentityStore,
        *,
        instances: Instances,
        replica: Replica,
        files: FileHandlers,
        published: tuple[Confd | RestUsers, ...],
        fence: EpochFence,
        candidates: KnownCandidates,
    ) -> None:
        self._identity = identity
        self._instances = instances
        self._replica = replica
        self._files = files
        self._published = published
        self._fence = fence
        self._candidates = candidates
        self._changing = asyncio.Lock()

    async def who(self) -> Who:
        return self._identity.who()

    async def request(self, *, instead_of: KeyId | None = None) -> Request:
        async with self._changing:  # the key that is asked for must not come into use meanwhile
            return Request(csr=await self._identity.renewal_request(instead_of))

    async def renew(self, *, certificate: str, authority: str = "") -> None:
        async with self._changing:
            await self._identity.renew(certificate, authority)

    async def rename(self, *, node: NodeName) -> None:
        check_name(node, "node")
        async with self._changing:
            await self._identity.rename(node)

    async def leave(self) -> None:
        async with self._changing:
            guests = await self._instances.guests()
            if guests:
                names = ", ".join(guest.name for guest in guests)
                raise Conflict(f"Guests are still on this node: {names}.", instances=names)
            # The identity goes last but one: until then the call can be repeated. The grant
            # goes after it, since a member that forgot its master could obey another.
            await self._replica.erase()
            await self._files.erase()
            for each in self._published:
                await each.withdraw()
            await self._identity.leave()
            await self._fence.forget()
            await self._candidates.forget()
