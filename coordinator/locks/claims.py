"""Who claims which locks: one index for those who hold, and one for those who wait."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from coordinator.locks.names import Level, LockName, Mode

Claimant = TypeVar("Claimant", bound=Hashable)


class Claims(Generic[Claimant]):
    """Claims on locks; finds those in conflict with a mode without looking at any other.

    A lock on a whole level conflicts with those on its single locks and the other way round,
    so single claims are also counted by level.
    """

    def __init__(self) -> None:
        self._on: dict[LockName, _Claimants[Claimant]] = {}
        self._singles: dict[Level, _Claimants[Claimant]] = {}

    def add(self, who: Claimant, lock: LockName, mode: Mode) -> None:
        self._on.setdefault(lock, _Claimants()).add(who, mode)
        if not lock.is_all:
            self._singles.setdefault(lock.level, _Claimants()).add(who, mode)

    def remove(self, who: Claimant, lock: LockName, mode: Mode) -> None:
        """Take back exactly what was added."""
        self._on[lock].remove(who, mode)
        if not self._on[lock]:
            del self._on[lock]
        if not lock.is_all:
            self._singles[lock.level].remove(who, mode)

    def against(self, lock: LockName, mode: Mode) -> Iterator[Claimant]:
        """Yield who claims something that can't be had together with this; may repeat one."""
        if lock in self._on:
            yield from self._on[lock].against(mode)
        other = self._singles.get(lock.level) if lock.is_all else self._on.get(lock.whole_level)
        if other is not None:
            yield from other.against(mode)

    def names(self) -> Iterator[LockName]:
        yield from self._on

    def on(self, lock: LockName) -> Iterator[tuple[Claimant, Mode]]:
        """Yield the claims on exactly this lock, in the order in which they were made."""
        if lock in self._on:
            yield from self._on[lock].all()


class _Claimants(Generic[Claimant]):
    """Claims on one lock or on all single locks of a level, by mode, with their number."""

    __slots__ = ("exclusive", "shared")

    def __init__(self) -> None:
        self.exclusive: dict[Claimant, int] = {}
        self.shared: dict[Claimant, int] = {}

    def add(self, who: Claimant, mode: Mode) -> None:
        claims = self._claims(mode)
        claims[who] = claims.get(who, 0) + 1

    def remove(self, who: Claimant, mode: Mode) -> None:
        claims = self._claims(mode)
        claims[who] -= 1
        if not claims[who]:
            del claims[who]

    def against(self, mode: Mode) -> Iterator[Claimant]:
        yield from self.exclusive
        if mode is Mode.EXCLUSIVE:
            yield from self.shared

    def all(self) -> Iterator[tuple[Claimant, Mode]]:
        yield from ((who, Mode.EXCLUSIVE) for who in self.exclusive)
        yield from ((who, Mode.SHARED) for who in self.shared)

    def __bool__(self) -> bool:
        return bool(self.exclusive or self.shared)

    def _claims(self, mode: Mode) -> dict[Claimant, int]:
        return self.exclusive if mode is Mode.EXCLUSIVE else self.shared
