"""Whether this node is in a cluster, by files that make it so.

identity/    of a member: key, certificate, authority, membership.json; made whole by a rename;
             and the key that is to take that one's place: the certificate says which is in use
joining/     of a node of no cluster: the temporary pair, and the key it will have as member
join-token   what the operator carries to the cluster
"""

import asyncio
import shutil
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.names import KeyId, NodeName
from common.noderpc.identity import Membership, Who
from common.paths import Paths
from common.tls.context import CERTIFICATE, KEY, joining_server_context, server_context
from common.tls.token import JoinToken
from noded.durable_file import remove_durably, write_durably
from noded.identity.directory import NEXT_KEY, IdentityDirectory, Member
from noded.identity.keys import KeyMaker
from noded.identity.own_token import keep_token, known_token
from noded.system.threads import in_thread


class IdentityStore:
    """One node's identity; ``on_change`` is called after each change of it."""

    def __init__(self, paths: Paths, keys: KeyMaker, *, now: Callable[[], float]) -> None:
        """Read what is there.

        Args:
            paths: of this node.
            keys: makes keys.
            now: tells the time in seconds since 1970.

        Raises:
            NodeFailure: the identity is damaged.
        """
        self._identity = IdentityDirectory(paths.identity)
        self._joining = paths.state / "joining"
        self._token_file = paths.join_token
        self._keys = keys
        self._now = now
        self._asking = asyncio.Lock()
        self.on_change: Callable[[], None] = lambda: None
        self.member = self._identity.load()
        self.valid_until = self._read_end() if self.member else None
        self.token: JoinToken | None = None

    def server_context(self) -> ssl.SSLContext:
        """Return what to serve with, as a member or as a node of no cluster.

        Raises:
            InvalidRequest: a file is missing or damaged.
        """
        if self.member:
            return server_context(self._identity.place)
        return joining_server_context(self._joining / KEY, self._joining / CERTIFICATE)

    async def prepare(self) -> None:
        """Remove what a crash left; as a node of no cluster, have a join token.

        Raises:
            NodeFailure: the disk is full or broken.
        """
        if self.member:
            await in_thread(self._forget_joining)
        else:
            await self._ensure_token()

    async def request(self, node: NodeName) -> str:
        """Ask for a certificate for the key this node will have; PEM.

        Raises:
            NodeFailure: the disk is full or broken.
        """
        return await self._request(node, self._joining / NEXT_KEY)

    async def accept(self, membership: Membership) -> None:
        """Become a member; from the rename on, also after a crash.

        Raises:
            Conflict: no certificate was asked for.
            InvalidRequest: the certificate is not for our key, or not of that cluster.
        """
        if not (self._joining / NEXT_KEY).exists():
            raise Conflict("This node has asked for no certificate; begin with join.request.")
        self.member = await in_thread(self._become, membership)
        self.valid_until = self._read_end()
        self.token = None
        self.on_change()

    def who(self) -> Who:
        """Say who this member is."""
        certificate, key = self._identity.certificate, self._key_in_use()
        return Who(
            node_uuid=self._as_member().node_uuid,
            key=key,
            certificate=certificate,
            authority=self._identity.authority,
        )

    async def renewal_request(self, instead_of: KeyId | None = None) -> str:
        """Ask for a new certificate for the key this member has, or for another key; PEM.

        Args:
            instead_of: the key that is to be replaced; if it is in use, the other one is made,
                unless it was before.
        """
        node = self._as_member().node
        if instead_of == self._key_in_use():
            return await self._request(node, self._identity.place / NEXT_KEY)
        return await self._request(node, self._identity.place / KEY)

    async def renew(self, certificate: str, authority: str = "") -> None:
        """Use another certificate from now on, and trust others if so told.

        Raises:
            InvalidRequest: it is not for our name and the key that we have in use, or the one that
                is to take its place, or not of those that we are to trust.
        """
        node = self._as_member().node
        try:
            await in_thread(self._identity.replace_certificate, node, certificate, authority)
        except NodeFailure:  # a disk may fail after it has taken the change
            with suppress(InvalidRequest):  # or half of it, which the next start completes
                self.on_change()
            raise
        finally:
            self.valid_until = self._read_end()
        self.on_change()

    async def rename(self, node: NodeName) -> None:
        """Go by another name from now on, for which the certificate is good already.

        Raises:
            InvalidRequest: it is not.
        """
        member = replace(self._as_member(), node=node)
        await in_thread(self._identity.keep_name, member)
        self.member = member
        self.on_change()

    async def leave(self) -> None:
        """Be a node of no cluster from now on, with a new token."""
        await in_thread(self._identity.forget)
        self.member = self.valid_until = None
        await self._ensure_token()
        self.on_change()

    async def _request(self, node: NodeName, path: Path) -> str:
        """Ask for a certificate for the key in a file, which is made if it is not there; PEM."""
        async with self._asking:  # a repeat must not make another key
            known = _text_of(path)
            made = await self._keys.request(node, known)
            if known is None:
                await in_thread(write_durably, path, made.key.encode())
        return made.csr

    def _key_in_use(self) -> KeyId:
        return self._identity.read_certificate().key

    def _as_member(self) -> Member:
        if self.member is None:
            raise Conflict("This node is in no cluster.")
        return self.member

    def _read_end(self) -> float:
        """Return until when this node's certificate is good, which is asked with a dead disk."""
        return self._identity.read_certificate().valid_until

    async def _ensure_token(self) -> None:
        await in_thread(self._identity.remove_unfinished)
        self.token = await in_thread(known_token, self._token_file, self._joining)
        if self.token is None:
            pair = await self._keys.temporary(self._now())
            self.token = await in_thread(keep_token, pair, self._token_file, self._joining)

    def _become(self, membership: Membership) -> Member:
        member = self._identity.become(membership, (self._joining / NEXT_KEY).read_bytes())
        self._forget_joining()
        return member

    def _forget_joining(self) -> None:
        self._identity.remove_unfinished()
        remove_durably(self._token_file)
        shutil.rmtree(self._joining, ignore_errors=True)


def _text_of(path: Path) -> str | None:
    """Return what a small file holds; None if there is none."""
    return path.read_text(encoding="ascii") if path.exists() else None
