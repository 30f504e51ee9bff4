"""Calls by which a node of no cluster becomes a member."""

from typing import Any

from common.errors import Conflict
from common.messages import to_builtins
from common.names import NodeName, check_name
from common.noderpc.files import Files
from common.noderpc.identity import Join, Membership, Request
from common.noderpc.replica import Replica
from noded.calls.roster import KnownCandidates
from noded.identity.store import IdentityStore


class JoinHandlers(Join):
    def __init__(
        self,
        identity: IdentityStore,
        *,
        files: Files,
        replica: Replica,
        candidates: KnownCandidates,
    ) -> None:
        self._identity = identity
        self._files = files
        self._replica = replica
        self._candidates = candidates

    async def check(self, *, node: NodeName, proof: str) -> None:
        self._check(proof, "join.check", {"node": node})
        check_name(node, "node")

    async def request(self, *, node: NodeName, proof: str) -> Request:
        self._check(proof, "join.request", {"node": node})
        check_name(node, "node")
        return Request(csr=await self._identity.request(node))

    async def accept(self, *, membership: Membership, proof: str) -> None:
        self._check(proof, "join.accept", {"membership": to_builtins(membership)})
        check_name(membership.node, "node")
        check_name(membership.cluster, "cluster")
        # Before the identity: a member without its ssconf would not know its directories, one
        # without a roster nobody to obey, and with an old state it would have a say in it.
        await self._replica.erase()
        await self._files.publish(files=membership.ssconf)
        await self._candidates.begin(membership.roster)
        await self._identity.accept(membership)

    def _check(self, proof: str, call: str, arguments: dict[str, Any]) -> None:
        token = self._identity.token
        if token is None:
            raise Conflict("This node is in a cluster already.")
        token.check_proof(proof, call, arguments)
