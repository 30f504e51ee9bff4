"""Fields of rows that this version does not know: kept beside what it knows, and written back.

A newer version may have written a row. Whoever changes one of its objects without knowing of them
must neither lose such fields nor move them: in memory, each part of an object has those of its own
under ``Part.unknown``, so they go where it goes; in JSON they are among the others.
"""

import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from common.model.stored import UNKNOWN, Part

PartType = type[Part]
_Move = Callable[[dict[str, Any], PartType], dict[str, Any]]

MARK = f'"{UNKNOWN}":'.encode()  # in JSON text with such fields, and hardly ever in any other


def gather(row: Any, kind: PartType) -> Any:
    """Put the fields that ``kind`` and its parts do not know where they are kept."""
    return _moved(row, kind, _gather)


def scatter(value: Any, kind: PartType) -> Any:
    """Put the fields that are kept back among the others: undo ``gather``."""
    return _moved(value, kind, _scatter)


def _gather(values: dict[str, Any], kind: PartType) -> dict[str, Any]:
    known = frozenset(kind.__struct_encode_fields__) - {UNKNOWN}
    unknown = {name: value for name, value in values.items() if name not in known}
    if not unknown:
        return values
    return {name: values[name] for name in values if name in known} | {UNKNOWN: unknown}


def _scatter(values: dict[str, Any], _: PartType) -> dict[str, Any]:
    unknown: dict[str, Any] = values.pop(UNKNOWN, {})
    return unknown | values


def _moved(value: Any, kind: PartType | None, move: _Move) -> Any:
    """Rebuild JSON values of which those that are objects are of one kind."""
    if kind is None:
        return value
    if isinstance(value, list):
        return [_moved(each, kind, move) for each in value]
    if not isinstance(value, dict):
        return value
    parts = _parts(kind)
    return move({name: _moved(each, parts.get(name), move) for name, each in value.items()}, kind)


@cache
def _parts(kind: PartType) -> Mapping[str, PartType]:
    """Return what is in the fields of ``kind``, by their names in JSON, where it has parts."""
    hints = typing.get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return {encoded: part for name, encoded in names if (part := _within(hints[name])) is not None}


def _within(hint: Any) -> PartType | None:
    """Return the only kind of part that a value of a type consists of: itself, or its items."""
    if isinstance(hint, type) and issubclass(hint, Part):
        return hint
    inner = {part for each in typing.get_args(hint) if (part := _within(each)) is not None}
    if len(inner) > 1 or (inner and typing.get_origin(hint) is dict):
        raise TypeError(f"{hint} has several kinds of parts, or parts by name; make them orders.")
    return inner.pop() if inner else None
