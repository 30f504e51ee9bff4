"""Immutable maps of objects of all kinds, with their names and indexes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from immutables import Map, MapMutation

from common.errors import Conflict
from common.model.stored import Stored
from common.natural import natural_key
from coordinator.state.guess import a, guess
from coordinator.state.kinds import Index, Kind, kind_of
from coordinator.state.rows import Put, Update

K = TypeVar("K", bound=str | int)
T = TypeVar("T", bound=Stored)

_NONE: Map[Any, Any] = Map()


@dataclass(frozen=True)
class Objects:
    """Objects by kind and key; ``apply`` makes the next ones, sharing what stays the same.

    A ``ref`` is a name or a UUID; where a thing has to be there, the first parts of its name will
    do if they are of no other: ``web1`` for ``web1.example.com``.
    """

    _tables: Mapping[str, Map[Any, Any]] = field(default_factory=dict)  # by kind; none is empty
    _names: Map[tuple[str, str], Any] = field(default_factory=Map, repr=False)  # to keys
    _found: Map[tuple[Index[Any], str], frozenset[Any]] = field(default_factory=Map, repr=False)
    _sorted: dict[str, tuple[Any, ...]] = field(default_factory=dict, compare=False, repr=False)

    def table(self, kind: Kind[K, T]) -> Map[K, T]:
        """Return all objects of a kind, by key."""
        return self._tables.get(kind.name, _NONE)

    def find(self, kind: Kind[K, T], ref: str) -> T | None:
        """Return what has this very name or UUID."""
        table = self._tables.get(kind.name, _NONE)
        found: T | None = table.get(self._names.get((kind.name, ref), ref))
        return found

    def get(self, kind: Kind[K, T], ref: str) -> T:
        """Return what ``ref`` can only mean.

        Raises:
            NotFound: there is no such thing, or there are several.
        """
        found = self.find(kind, ref)
        if found is not None:
            return found
        return guess(self.table(kind).values() if kind.named else (), kind.name, ref)

    def sorted(self, kind: Kind[K, T]) -> tuple[T, ...]:
        """Return all objects of a kind in order: by name, or by key where they have none."""
        if kind.name not in self._sorted:
            self._sorted[kind.name] = _in_order(kind, self.table(kind).values())
        return self._sorted[kind.name]

    def at(self, kind: Kind[K, T], index: Index[T], key: str) -> tuple[T, ...]:
        """Return the objects that an index has under ``key``, in order."""
        table = self.table(kind)
        return _in_order(kind, (table[each] for each in self._found.get((index, key), ())))

    def __iter__(self) -> Iterator[Stored]:
        """Yield each object once."""
        for table in self._tables.values():
            yield from table.values()

    def apply(self, updates: Iterable[Update]) -> Self:
        """Return the objects after ``updates``, in their order.

        Raises:
            Conflict: a name would be given twice.
        """
        edit = _Edit(self._tables, self._names, self._found)
        for update in updates:
            kind = kind_of(update.item)
            if isinstance(update, Put):
                edit.put(kind, update.item)
            else:
                edit.delete(kind, update.item)
        tables = dict(self._tables)
        for name, table in edit.tables.items():
            tables[name] = table.finish()
            if not table:
                del tables[name]
        unchanged = {name: s for name, s in self._sorted.items() if name not in edit.tables}
        return type(self)(tables, edit.names.finish(), edit.found.finish(), unchanged)


class _Edit:
    """Maps that are being changed: of tables only those that need to be."""

    def __init__(
        self,
        tables: Mapping[str, Map[Any, Any]],
        names: Map[tuple[str, str], Any],
        found: Map[tuple[Index[Any], str], frozenset[Any]],
    ) -> None:
        self.tables: dict[str, MapMutation[Any, Any]] = {}
        self.names, self.found = names.mutate(), found.mutate()
        self._before = tables

    def put(self, kind: Kind[Any, Any], item: Any) -> None:
        table, key = self._table(kind), kind.key(item)
        if kind.is_findable and (old := table.get(key)) is not None:
            self._forget(kind, key, old)
        if kind.is_findable:
            self._enter(kind, key, item)
        table[key] = item

    def delete(self, kind: Kind[Any, Any], item: Any) -> None:
        key = kind.key(item)
        old = self._table(kind).pop(key, None)
        if old is not None:
            self._forget(kind, key, old)

    def _enter(self, kind: Kind[Any, Any], key: Any, item: Any) -> None:
        if kind.named:
            if (kind.name, item.name) in self.names:
                told = f"There is already {a(kind.name)} named {item.name}."
                raise Conflict(told, name=item.name)
            self.names[kind.name, item.name] = key
        for index in kind.indexes:
            for each in index.keys(item):
                self.found[index, each] = self.found.get((index, each), frozenset()) | {key}

    def _forget(self, kind: Kind[Any, Any], key: Any, item: Any) -> None:
        if kind.named:
            del self.names[kind.name, item.name]
        for index in kind.indexes:
            for each in index.keys(item):
                left = self.found[index, each] - {key}
                if left:
                    self.found[index, each] = left
                else:
                    del self.found[index, each]

    def _table(self, kind: Kind[Any, Any]) -> MapMutation[Any, Any]:
        if kind.name not in self.tables:
            self.tables[kind.name] = self._before.get(kind.name, _NONE).mutate()
        return self.tables[kind.name]


def _in_order(kind: Kind[K, T], items: Iterable[T]) -> tuple[T, ...]:
    """Sort objects by name, as people count, or by key."""
    if not kind.named:
        return tuple(sorted(items, key=kind.key))
    named: Iterable[Any] = items
    return tuple(sorted(named, key=lambda item: natural_key(item.name)))
