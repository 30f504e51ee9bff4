"""A sequence whose elements are made when they are looked at, and to which more can be put.

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

    def followed_by(self, more: Sequence[T]) -> Rows[T]:
        """The same and more after it."""
        rows: Rows[T] = Rows(0, self._make)
        rows._made = [*self._made, *more]
        return rows

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
