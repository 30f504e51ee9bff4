"""Fields of rows that this version does not know: kept beside what it knows, and written back.

A newer version may have written a row. Whoever changes one of its objects without knowing of them
must neither lose such fields nor move them: in memory, each part of an object has those of its own
under ``Part.unknown``, so they go where it goes; in JSON they are among the others.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from common.model.stored import UNKNOWN, Part

Values = dict[str, Any]
Struct = type[msgspec.Struct]
Move = Callable[[Values, Struct], Values]

MARK = f'"{UNKNOWN}":'.encode()  # in JSON text with such fields, and hardly ever in any other


def gather(value: Any, hint: Any, before: Move) -> Any:
    """Put fields that are not known where they are kept: in JSON values of a type.

    Args:
        value: as a JSON parser or ``to_builtins`` gives it.
        hint: the type that it is going to be.
        before: is given each object on the way in, and returns what it is taken for.
    """
    return _rebuilt(value, _shape(hint), before, _gather)


def scatter(value: Any, hint: Any, before: Move) -> Any:
    """Put fields that are kept back among the others: undo ``gather``."""
    return _rebuilt(value, _shape(hint), before, _scatter)


def _gather(values: Values, kind: Struct) -> Values:
    known = frozenset(kind.__struct_encode_fields__) - {UNKNOWN}
    unknown = {name: value for name, value in values.items() if name not in known}
    if not unknown or not issubclass(kind, Part):
        return values
    return {name: values[name] for name in values if name in known} | {UNKNOWN: unknown}


def _scatter(values: Values, kind: Struct) -> Values:
    if not issubclass(kind, Part):
        return values
    unknown: Values = values.pop(UNKNOWN, {})
    return unknown | values


@dataclass(frozen=True, slots=True)
class _Object:
    kind: Struct


@dataclass(frozen=True, slots=True)
class _Items:
    of: "_Shape"


@dataclass(frozen=True, slots=True)
class _Named:
    of: "_Shape"


_Shape = _Object | _Items | _Named | None  # of values with parts somewhere; None if they have none


def _rebuilt(value: Any, shape: _Shape, before: Move, after: Move) -> Any:
    match shape, value:
        case _Items(of), list() | tuple():
            return [_rebuilt(each, of, before, after) for each in value]
        case _Named(of), dict():
            return {name: _rebuilt(each, of, before, after) for name, each in value.items()}
        case _Object(kind), dict():
            fields = _fields(kind)
            inner = {
                name: _rebuilt(each, fields.get(name), before, after)
                for name, each in before(value, kind).items()
            }
            return after(inner, kind)
        case _:
            return value


@cache
def _shape(hint: Any) -> _Shape:
    """Return how a value of a type is made up, as far as there are parts in it.

    Raises:
        TypeError: it may be one of several, and only its reader could tell which.
    """
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _Object(hint) if issubclass(hint, Part) or _fields(hint) else None
    inner = [shape for each in typing.get_args(hint) if (shape := _shape(each)) is not None]
    if len(inner) > 1:
        raise TypeError(f"{hint} has several kinds of parts: no reader could tell them apart.")
    if not inner:
        return None
    match typing.get_origin(hint):
        case kind if kind in (tuple, list):
            return _Items(inner[0])
        case kind if kind is dict:
            return _Named(inner[0])
        case _:  # or nothing at all; or annotated
            return inner[0]


@cache
def _fields(kind: Struct) -> Mapping[str, _Shape]:
    """Return what is in the fields of a struct, by their names in JSON, where it has parts."""
    hints = typing.get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return {encoded: shape for name, encoded in names if (shape := _shape(hints[name])) is not None}
