"""One step of the cluster's state, as it is sent to every master candidate."""

import hashlib

import msgspec

from common.messages import Order, to_json
from common.model.stamp import Stamp
from common.names import Epoch, Serial

GONE = msgspec.Raw(b"null")
ARCHIVE = "archive"  # kind of what replicas keep beside the rows: see ``common.noderpc.replica``


class Change(Order):
    """A row set (``body`` is its JSON text) or, with the body ``null``, deleted.

    Of the kind ``ARCHIVE``, whose ids are numbers, a deletion takes all lower numbers along.
    """

    kind: str  # "instance", "job", …
    id: str  # a UUID; for jobs the number
    body: msgspec.Raw

    @property
    def deletes(self) -> bool:
        return self.body == GONE


class Commit(Order):
    """Changes that become visible together. ``digest`` chains it to all before it."""

    epoch: Epoch
    serial: Serial
    changes: tuple[Change, ...]
    digest: str  # of the state after this commit

    @property
    def stamp(self) -> Stamp:
        return Stamp(epoch=self.epoch, serial=self.serial, digest=self.digest)


def digest_after(before: str, epoch: Epoch, serial: Serial, changes: tuple[Change, ...]) -> str:
    """Return the hex SHA-256 over the previous digest and the canonical changes."""
    link = hashlib.sha256(before.encode())
    link.update(to_json((epoch, serial, changes)))
    return link.hexdigest()


def next_commit(before: Stamp, epoch: Epoch, changes: tuple[Change, ...]) -> Commit:
    """Chain ``changes`` to the state ``before``."""
    serial = Serial(before.serial + 1)
    digest = digest_after(before.digest, epoch, serial, changes)
    return Commit(epoch=epoch, serial=serial, changes=changes, digest=digest)


def follows(commit: Commit, before: Stamp) -> bool:
    """Tell whether ``commit`` is the one after ``before``, unaltered."""
    return (
        commit.serial == before.serial + 1
        and commit.epoch >= before.epoch
        and commit.digest
        == digest_after(before.digest, commit.epoch, commit.serial, commit.changes)
    )
