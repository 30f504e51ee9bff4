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
    return _moved(row, (kind,), _gather)


def scatter(value: Any, kind: PartType) -> Any:
    """Put the fields that are kept back among the others: undo ``gather``."""
    return _moved(value, (kind,), _scatter)


def _gather(values: dict[str, Any], kind: PartType) -> dict[str, Any]:
    known = _known(kind)
    unknown = {name: value for name, value in values.items() if name not in known}
    if not unknown:
        return values
    return {name: values[name] for name in values if name in known} | {UNKNOWN: unknown}


def _scatter(values: dict[str, Any], _: PartType) -> dict[str, Any]:
    unknown: dict[str, Any] = values.pop(UNKNOWN, {})
    return unknown | values


def _moved(value: Any, kinds: tuple[PartType, ...], move: _Move) -> Any:
    """Rebuild JSON values, of which those that are objects are one of ``kinds``."""
    if not kinds:
        return value
    if isinstance(value, list):
        return [_moved(each, kinds, move) for each in value]
    if not isinstance(value, dict) or (kind := _kind_of(value, kinds)) is None:
        return value
    parts = _parts(kind)
    inner = {name: _moved(each, parts.get(name, ()), move) for name, each in value.items()}
    return move(inner, kind)


def _kind_of(value: Mapping[str, Any], kinds: tuple[PartType, ...]) -> PartType | None:
    """Return which of ``kinds`` an object is; of a union, its tag tells."""
    if len(kinds) == 1:
        return kinds[0]
    for kind in kinds:
        config = kind.__struct_config__
        if config.tag_field is not None and value.get(config.tag_field) == config.tag:
            return kind
    return None  # of another version altogether: reading it says so


@cache
def _known(kind: PartType) -> frozenset[str]:
    """Return the names in JSON of what ``kind`` knows."""
    tag = kind.__struct_config__.tag_field
    return frozenset(kind.__struct_encode_fields__) - {UNKNOWN} | ({tag} if tag else frozenset())


@cache
def _parts(kind: PartType) -> Mapping[str, tuple[PartType, ...]]:
    """Return what is in the fields of ``kind``, by their names in JSON, where it has parts."""
    hints = typing.get_type_hints(kind)
    return {
        encoded: found
        for name, encoded in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        if (found := tuple(_within(hints[name])))
    }


def _within(hint: Any) -> list[PartType]:
    """Return the parts that a value of a type consists of: itself, its alternatives, its items."""
    if isinstance(hint, type) and issubclass(hint, Part):
        return [hint]
    inner = [part for each in typing.get_args(hint) for part in _within(each)]
    if inner and typing.get_origin(hint) is dict:
        raise TypeError(f"{hint} has parts by name, and they would be taken for one part.")
    return inner
