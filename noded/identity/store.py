"""Whether this node is in a cluster, by files that make it so.

identity/    of a member: key, certificate, authority, membership.json; made whole by a rename;
             and the key that is to take that one's place: the certificate says which is in use
joining/     of a node of no cluster: the temporary pair, and the key it will have as member
join-token   what the operator carries to the cluster
"""

import asyncio
import logging
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.messages import Order, from_json, to_json
from common.names import ClusterId, ClusterName, KeyId, NodeId, NodeName
from common.noderpc.identity import Membership, Who
from common.paths import Paths
from common.tls.certificate import read_pem
from common.tls.context import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    WrongTime,
    check_identity,
    fit_together,
    joining_server_context,
    server_context,
)
from common.tls.token import JoinToken
from noded.durable_file import explaining, remove_durably, sync_directory, write_durably
from noded.identity.keys import KeyMaker
from noded.identity.own_token import keep_token, known_token
from noded.system.threads import in_thread

log = logging.getLogger(__name__)

MEMBER, NEXT_KEY = "membership.json", "next-key.pem"


class Member(Order):
    """Who this node is, and in which cluster."""

    cluster: ClusterName
    cluster_uuid: ClusterId
    node: NodeName
    node_uuid: NodeId


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
        self._identity = paths.identity
        self._joining = paths.state / "joining"
        self._token_file = paths.join_token
        self._keys = keys
        self._now = now
        self._asking = asyncio.Lock()
        self.on_change: Callable[[], None] = lambda: None
        self.member = self._load()
        self.valid_until = self._read_end() if self.member else None
        self.token: JoinToken | None = None

    def server_context(self) -> ssl.SSLContext:
        """Return what to serve with, as a member or as a node of no cluster.

        Raises:
            InvalidRequest: a file is missing or damaged.
        """
        if self.member:
            return server_context(self._identity)
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
        certificate = (self._identity / CERTIFICATE).read_text(encoding="ascii")
        key = self._key_in_use()
        return Who(node_uuid=self._as_member().node_uuid, key=key, certificate=certificate)

    async def renewal_request(self, instead_of: KeyId | None = None) -> str:
        """Ask for a new certificate for the key this member has, or for another key; PEM.

        Args:
            instead_of: the key that is to be replaced; if it is in use, the other one is made,
                unless it was before.
        """
        node = self._as_member().node
        if instead_of == self._key_in_use():
            return await self._request(node, self._identity / NEXT_KEY)
        return await self._request(node, self._identity / KEY)

    async def renew(self, certificate: str, authority: str = "") -> None:
        """Use another certificate from now on, and trust others if so told.

        Raises:
            InvalidRequest: it is not for our name and the key that we have in use, or the one that
                is to take its place, or not of those that we are to trust.
        """
        node = self._as_member().node
        try:
            await in_thread(self._replace_certificate, node, certificate, authority)
        finally:  # a disk may fail after it has taken the change
            self.valid_until = self._read_end()
        self.on_change()

    async def rename(self, node: NodeName) -> None:
        """Go by another name from now on, for which the certificate is good already.

        Raises:
            InvalidRequest: it is not.
        """
        member = replace(self._as_member(), node=node)
        await in_thread(self._keep_name, member)
        self.member = member
        self.on_change()

    async def leave(self) -> None:
        """Be a node of no cluster from now on, with a new token."""
        await in_thread(self._forget_identity)
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
        return read_pem((self._identity / CERTIFICATE).read_text(encoding="ascii")).key

    def _as_member(self) -> Member:
        if self.member is None:
            raise Conflict("This node is in no cluster.")
        return self.member

    def _load(self) -> Member | None:
        path = self._identity / MEMBER
        if not self._identity.exists():
            return None
        with explaining(f"read {path}"):
            text = path.read_bytes()
        try:
            member = from_json(text, Member, what=str(path))
        except InvalidRequest as error:
            raise self._damaged(error) from error
        try:
            if fit_together(self._identity / CERTIFICATE, self._identity / NEXT_KEY):
                self._use_next_key()
            check_identity(self._identity, member.node)
        except WrongTime as error:
            # Others may refuse it, which is for the operator to see; but the guests that run
            # here have to be looked after, and a clock may be set at any moment.
            log.warning("%s Until then the master may be unable to reach this node.", error)
        except InvalidRequest as error:
            raise self._damaged(error) from error
        return member

    def _read_end(self) -> float:
        """Return until when this node's certificate is good, which is asked with a dead disk."""
        return read_pem((self._identity / CERTIFICATE).read_text(encoding="ascii")).valid_until

    def _damaged(self, error: InvalidRequest) -> NodeFailure:
        return NodeFailure(
            f"The identity of this node is damaged: {error} Repair the files in "
            f"{self._identity}, or remove that directory and join the cluster anew.",
            path=str(self._identity),
        )

    async def _ensure_token(self) -> None:
        await in_thread(self._remove_unfinished)
        self.token = await in_thread(known_token, self._token_file, self._joining)
        if self.token is None:
            pair = await self._keys.temporary(self._now())
            self.token = await in_thread(keep_token, pair, self._token_file, self._joining)

    def _become(self, membership: Membership) -> Member:
        member = Member(
            cluster=membership.cluster,
            cluster_uuid=membership.cluster_uuid,
            node=membership.node,
            node_uuid=membership.node_uuid,
        )
        key = (self._joining / NEXT_KEY).read_bytes()
        new = self._write_new(key, membership.certificate, membership.authority)
        check_identity(new, member.node)
        write_durably(new / MEMBER, to_json(member))
        with explaining(f"create {self._identity}"):
            new.rename(self._identity)
            sync_directory(self._identity.parent)
        self._forget_joining()
        return member

    def _replace_certificate(self, node: NodeName, certificate: str, authority: str) -> None:
        has_next_key = read_pem(certificate).key != self._key_in_use()
        path = self._identity / (NEXT_KEY if has_next_key else KEY)
        if not path.exists():
            raise InvalidRequest(
                f"The certificate is for another key than {node} has, and it was asked for none."
            )
        key = path.read_bytes()
        known = (self._identity / AUTHORITY).read_text(encoding="ascii")
        wanted = authority or known
        check_identity(self._write_new(key, certificate, wanted), node)
        # Whichever of the two files a crash leaves as it was, they fit together: while we come to
        # trust more the old certificate will do, and while we trust less the new one does.
        files = [(AUTHORITY, wanted)] if wanted != known else []
        files.insert(len(files) if known in wanted else 0, (CERTIFICATE, certificate))
        for name, text in files:
            write_durably(self._identity / name, text.encode())
        if has_next_key:
            self._use_next_key()  # or the next start does, by the certificate
        self._remove_unfinished()

    def _use_next_key(self) -> None:
        with explaining(f"replace {self._identity / KEY}"):
            (self._identity / NEXT_KEY).rename(self._identity / KEY)
            sync_directory(self._identity)

    def _keep_name(self, member: Member) -> None:
        check_identity(self._identity, member.node)
        write_durably(self._identity / MEMBER, to_json(member))

    def _write_new(self, key: bytes, certificate: str, authority: str) -> Path:
        self._remove_unfinished()
        new = self._unfinished
        with explaining(f"create {new}"):
            new.mkdir(mode=0o700)
        write_durably(new / KEY, key)
        write_durably(new / CERTIFICATE, certificate.encode())
        write_durably(new / AUTHORITY, authority.encode())
        return new

    def _forget_joining(self) -> None:
        self._remove_unfinished()
        remove_durably(self._token_file)
        shutil.rmtree(self._joining, ignore_errors=True)

    def _forget_identity(self) -> None:
        self._remove_unfinished()
        with explaining(f"remove {self._identity}"):
            self._identity.rename(self._unfinished)  # at once, or not at all
            sync_directory(self._identity.parent)
        self._remove_unfinished()

    @property
    def _unfinished(self) -> Path:
        """Where an identity is built and taken apart; means nothing after a crash."""
        return self._identity.with_name(f"{self._identity.name}.unfinished")

    def _remove_unfinished(self) -> None:
        shutil.rmtree(self._unfinished, ignore_errors=True)


def _text_of(path: Path) -> str | None:
    """Return what a small file holds; None if there is none."""
    return path.read_text(encoding="ascii") if path.exists() else None
