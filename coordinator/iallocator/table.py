"""Objects of a message as a table.

A column whose values are all as usual is taken as it is; of any other, each value is looked at by
itself, and complained of in hail's words.
"""

from __future__ import annotations

from itertools import chain, compress, islice

from common.errors import InvalidRequest
from coordinator.iallocator.fields import (
    Fields,
    an_object,
    flag,
    list_of,
    one_of,
    real,
    text,
    texts,
    whole,
)
from coordinator.iallocator.jsontext import Repeated, Written
from coordinator.iallocator.show import TEMPLATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Self

    Read = Callable[[Any], Any]

_LARGEST = 1 << 62  # hail's integers wrap at twice that

template = one_of("DiskTemplate", {name: name for name in TEMPLATES}.__getitem__)
_lists = list_of(lambda value: value)


class Table:
    """Objects of a message with the same keys.

    Attributes:
        rows: the objects.
    """

    def __init__(
        self,
        owners: Sequence[str],
        rows: Sequence[Any],
        what: str,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Have objects.

        Args:
            owners: their names.
            rows: the objects.
            what: each is, for complaints, with {} for its name.
            counts: where several objects have the same owner: how many of them.
        """
        self._owners, self.rows, self._what, self._counts = owners, rows, what, counts
        if not {*map(type, rows)} <= {dict} and not all(isinstance(row, dict) for row in rows):
            raise InvalidRequest("not an object")

    @classmethod
    def of(cls, found: dict[str, Any], what: str) -> Self:
        if not isinstance(found, Repeated):
            return cls([*found], [*found.values()], what)
        return cls([name for name, _ in found.pairs], [row for _, row in found.pairs], what)

    @property
    def names(self) -> Sequence[str]:
        """Of the objects, or of those whose they are."""
        if self._counts is None:
            return self._owners
        each = zip(self._owners, self._counts, strict=True)
        return [name for name, count in each for _ in range(count)]

    def one_by_one(self) -> Iterable[Table]:
        for name, row in zip(self.names, self.rows, strict=True):
            yield Table([name], [row], self._what)

    def get(self, key: str, read: Read, where: Sequence[bool] | None = None) -> list[Any]:
        """Read a column; ``where`` given, those of other objects are not looked at and 0."""
        if where is not None:
            names, rows = ([*compress(part, where)] for part in (self.names, self.rows))
            values = iter(Table(names, rows, self._what).get(key, read))
            return [next(values) if is_read else 0 for is_read in where]
        try:
            usual = _as_usual([row[key] for row in self.rows], read)
        except KeyError:
            usual = None
        return [fields.get(key, read) for fields in self._fields()] if usual is None else usual

    def find(self, key: str, read: Read) -> list[Any]:
        """Read a column in which values may be absent or null: None."""
        values = [row.get(key) for row in self.rows]
        if _as_usual([value for value in values if value is not None], read) is not None:
            return values
        return [fields.find(key, read) for fields in self._fields()]

    def inside(self, key: str) -> Table:
        """The objects under a key."""
        return Table(self.names, self.get(key, an_object), self._what)

    def inner(self, key: str) -> Table:
        """The objects in the lists under a key."""
        lists = self.get(key, _lists)
        rows = [*chain.from_iterable(lists)]
        return Table(self.names, rows, self._what, [*map(len, lists)])

    def by_owner(self, values: Iterable[Any]) -> list[list[Any]]:
        """Values of the objects of ``inner``, a list for each whose they are."""
        every = iter(values)
        return [[*islice(every, count)] for count in self._counts or ()]

    def _fields(self) -> Iterable[Fields]:
        for name, row in zip(self.names, self.rows, strict=True):
            yield Fields(row, self._what.format(name))


def _as_usual(values: list[Any], read: Read) -> list[Any] | None:
    """What ``read`` makes of values, if they are all as usual; else None."""
    kinds = {*map(type, values)}
    if read is whole:
        is_usual = kinds <= {int} and _fit(values)
    elif read is real:
        is_usual = kinds <= {int, Written} and _fit(values)
        return [float(value) for value in values] if is_usual else None
    elif read is texts:
        is_usual = kinds <= {list} and {*map(type, chain.from_iterable(values))} <= {str}
    elif read is template:
        is_usual = kinds <= {str} and {*values} <= TEMPLATES.keys()
    else:
        is_usual = kinds <= {_USUAL[read]}
    return values if is_usual else None


_USUAL: dict[Read, type] = {text: str, flag: bool, an_object: dict, _lists: list}


def _fit(values: list[Any]) -> bool:
    return not values or -_LARGEST < min(values) <= max(values) < _LARGEST
