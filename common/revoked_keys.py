"""The list of keys that open nothing any more, and how two sides find out what one lacks."""

import hashlib
from collections.abc import Iterable
from functools import cached_property

from common.names import KeyId
from common.noderpc.roster import HeldKeys, Revocations

AT_FIRST = 8  # keys that everybody is told: who was there lately is up to date with these


class RevokedKeys:
    """Keys, the latest last."""

    def __init__(self, keys: Iterable[KeyId] = ()) -> None:
        self.keys = tuple(keys)

    @cached_property
    def digest(self) -> str:
        """What equal lists have in common, and others do not: hex SHA-256 of the keys, in order."""
        return hashlib.sha256("\n".join(self.keys).encode()).hexdigest()

    @cached_property
    def held(self) -> HeldKeys:
        return HeldKeys(count=len(self.keys), digest=self.digest)

    @cached_property
    def _members(self) -> frozenset[KeyId]:
        return frozenset(self.keys)

    def __contains__(self, key: KeyId) -> bool:
        return key in self._members

    def after(self, known: int) -> Revocations:
        """Return what makes this list of one that begins with the first ``known`` keys of it."""
        latest = self.keys[known:]
        return Revocations(count=len(self.keys), digest=self.digest, latest=latest)

    def lately(self) -> Revocations:
        """Return what makes this list of one that was it lately; little, however long it is."""
        return self.after(max(0, len(self.keys) - AT_FIRST))

    def known_to(self, other: HeldKeys) -> int:
        """Tell how many keys of this list, from the first, are all that somebody says to have.

        Who has another list, or says what cannot be, has none of this one.
        """
        begins = RevokedKeys(self.keys[: other.count])
        return other.count if begins.held == other else 0

    def made(self, told: Revocations) -> "RevokedKeys | None":
        """Return the list that somebody tells of, or None if more of it has to be told."""
        kept = told.count - len(told.latest)
        if kept < 0 or kept > len(self.keys):
            return None
        whole = RevokedKeys((*self.keys[:kept], *told.latest))
        return whole if whole.held == HeldKeys(count=told.count, digest=told.digest) else None
