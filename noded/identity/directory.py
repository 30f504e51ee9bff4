"""The files that make this node a member of a cluster; after any crash they fit together."""

import logging
import shutil
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.messages import Order, from_json, to_json
from common.names import ClusterId, ClusterName, NodeId, NodeName
from common.noderpc.identity import Membership
from common.tls.certificate import Contents, read_pem
from common.tls.context import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    WrongTime,
    check_identity,
    fit_together,
)
from noded.durable_file import explaining, sync_directory, write_durably

log = logging.getLogger(__name__)

MEMBER, NEXT_KEY = "membership.json", "next-key.pem"


class Member(Order):
    """Who this node is, and in which cluster."""

    cluster: ClusterName
    cluster_uuid: ClusterId
    node: NodeName
    node_uuid: NodeId


class IdentityDirectory:
    """Key, certificate, authority and membership; whole, or not there at all."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def load(self) -> Member | None:
        """Return what is there.

        Raises:
            NodeFailure: it is damaged.
        """
        path = self.place / MEMBER
        if not self.place.exists():
            return None
        with explaining(f"read {path}"):
            text = path.read_bytes()
            # What is gone by from here on, a noded that was killed may not have synced.
            for directory in (self.place, self.place.parent):
                sync_directory(directory)
        try:
            member = from_json(text, Member, what=str(path))
        except InvalidRequest as error:
            raise self._damaged(error) from error
        try:
            if fit_together(self.place / CERTIFICATE, self.place / NEXT_KEY):
                self._use_next_key()
            check_identity(self.place, member.node)
        except WrongTime as error:
            # Others may refuse it, which is for the operator to see; but the guests that run
            # here have to be looked after, and a clock may be set at any moment.
            log.warning("%s Until then the master may be unable to reach this node.", error)
        except InvalidRequest as error:
            raise self._damaged(error) from error
        return member

    @property
    def certificate(self) -> str:
        """Return the certificate that is in use; PEM."""
        return (self.place / CERTIFICATE).read_text(encoding="ascii")

    @property
    def authority(self) -> str:
        """Return whose signatures are trusted; PEM, one after the other."""
        return (self.place / AUTHORITY).read_text(encoding="ascii")

    def read_certificate(self) -> Contents:
        """Return what the certificate that is in use says."""
        return read_pem(self.certificate)

    def become(self, membership: Membership, key: bytes) -> Member:
        """Be a member from the rename on, also after a crash.

        Raises:
            InvalidRequest: the certificate is not for this key, or not of that cluster.
        """
        member = Member(
            cluster=membership.cluster,
            cluster_uuid=membership.cluster_uuid,
            node=membership.node,
            node_uuid=membership.node_uuid,
        )
        new = self._write_new(key, membership.certificate, membership.authority)
        check_identity(new, member.node)
        write_durably(new / MEMBER, to_json(member))
        with explaining(f"create {self.place}"):
            new.rename(self.place)
            sync_directory(self.place.parent)
        return member

    def replace_certificate(self, node: NodeName, certificate: str, authority: str) -> None:
        """Have another certificate, for the key that is in use or the one that is to be.

        Args:
            node: whose certificate it has to be.
            certificate: PEM.
            authority: whom to trust; nothing: the same as before.

        Raises:
            InvalidRequest: it is not for our name and one of our keys, or not of those that we
                are to trust.
        """
        has_next_key = read_pem(certificate).key != self.read_certificate().key
        path = self.place / (NEXT_KEY if has_next_key else KEY)
        if not path.exists():
            raise InvalidRequest(
                f"The certificate is for another key than {node} has, and it was asked for none."
            )
        key = path.read_bytes()
        known = self.authority
        wanted = authority or known
        check_identity(self._write_new(key, certificate, wanted), node)
        # Whichever of the two files a crash leaves as it was, they fit together: while we come to
        # trust more the old certificate will do, and while we trust less the new one does.
        files = [(AUTHORITY, wanted)] if wanted != known else []
        files.insert(len(files) if known in wanted else 0, (CERTIFICATE, certificate))
        for name, text in files:
            write_durably(self.place / name, text.encode())
        if has_next_key:
            self._use_next_key()  # or the next start does, by the certificate
        self.remove_unfinished()

    def keep_name(self, member: Member) -> None:
        """Go by another name.

        Raises:
            InvalidRequest: the certificate is not good for that.
        """
        check_identity(self.place, member.node)
        write_durably(self.place / MEMBER, to_json(member))

    def forget(self) -> None:
        """Be no member any more: at once, or not at all."""
        self.remove_unfinished()
        with explaining(f"remove {self.place}"):
            self.place.rename(self._unfinished)
            sync_directory(self.place.parent)
        self.remove_unfinished()

    def remove_unfinished(self) -> None:
        """Remove what a crash left of an identity that was being made or taken apart."""
        shutil.rmtree(self._unfinished, ignore_errors=True)

    @property
    def _unfinished(self) -> Path:
        """Where an identity is built and taken apart; means nothing after a crash."""
        return self.place.with_name(f"{self.place.name}.unfinished")

    def _write_new(self, key: bytes, certificate: str, authority: str) -> Path:
        self.remove_unfinished()
        new = self._unfinished
        with explaining(f"create {new}"):
            new.mkdir(mode=0o700)
        write_durably(new / KEY, key)
        write_durably(new / CERTIFICATE, certificate.encode())
        write_durably(new / AUTHORITY, authority.encode())
        return new

    def _use_next_key(self) -> None:
        with explaining(f"replace {self.place / KEY}"):
            (self.place / NEXT_KEY).rename(self.place / KEY)
            sync_directory(self.place)

    def _damaged(self, error: InvalidRequest) -> NodeFailure:
        return NodeFailure(
            f"The identity of this node is damaged: {error} Repair the files in "
            f"{self.place}, or remove that directory and join the cluster anew.",
            path=str(self.place),
        )
