"""Sequences whose elements are made when they are looked at, and that grow without being copied.

Of the thousands of instances of a large cluster a request looks at a few, one by one; for the
others the columns suffice.
"""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")


class Rows(Sequence["T"]):
    """Elements 0 to ``size`` - 1, each made once by ``make``."""

    def __init__(self, size: int, make: Callable[[int], T]) -> None:
        self._made: list[T | None] = [None] * size
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        row = self._made[index]
        if row is None:
            row = self._made[index] = self._make(index % len(self))
        return row

    def __iter__(self) -> Iterator[T]:
        return (self[at] for at in range(len(self)))


class Joined(Sequence["T"]):
    """One sequence and more after it; neither is copied."""

    def __init__(self, first: Sequence[T], then: Sequence[T]) -> None:
        # A chain of many would be slow to look into; so no more than one joint.
        self._first: Sequence[T] = first
        self._then: Sequence[T] = then
        if isinstance(first, Joined):
            self._first, self._then = first.parts[0], [*first.parts[1], *then]

    @property
    def parts(self) -> tuple[Sequence[T], Sequence[T]]:
        return self._first, self._then

    def __len__(self) -> int:
        return len(self._first) + len(self._then)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        size = len(self._first)
        return self._first[at] if at < size else self._then[at - size]

    def __iter__(self) -> Iterator[T]:
        yield from self._first
        yield from self._then
