"""Texts as values of the types that are declared for them."""

import enum
import math
import re
import typing
from types import NoneType, UnionType
from typing import Any

import msgspec

from common.errors import InvalidRequest
from common.model.parameters import DEFAULT
from common.names import MiB
from common.units import parse_mib

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_YES_NO = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def typed(values: dict[str, Any], *kinds: type[msgspec.Struct]) -> dict[str, Any]:
    """Turn the text in ``values`` into what the parameters of ``kinds`` are declared to be.

    A key that nobody declares keeps its text; whoever gets it will say that it is unknown.

    Raises:
        InvalidRequest: a text is not of the declared type.
    """
    hints: dict[str, Any] = {"memory": MiB}  # Ganeti's word for maxmem and minmem
    for kind in kinds:
        hints |= {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in values.items():
        if value is True and key in hints and bare(hints[key]) is not bool:
            raise InvalidRequest(f"{key} needs a value, as in {key}=VALUE.")
    return {
        key: _named(key, value, hints[key])
        if isinstance(value, str) and value != DEFAULT and key in hints
        else value
        for key, value in values.items()
    }


def _named(key: str, text: str, hint: Any) -> Any:
    try:
        return read_plain(text, hint)
    except InvalidRequest as error:
        raise InvalidRequest(f"{key}: {error.message}") from error


def read_plain(text: str, hint: Any) -> Any:
    """Turn a text into what a type makes of it: a size, a number, one of an enum, itself.

    Raises:
        InvalidRequest: it makes nothing of it.
    """
    if is_number_or_name(hint):
        return int(text) if _WHOLE.fullmatch(text) else text
    kind = bare(hint)
    if kind is MiB:
        return parse_mib(text)
    if kind is bool:
        return read_yes_no(text)
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError as error:
            raise InvalidRequest(f"“{text}” is no number.") from error
        if isinstance(number, float) and not math.isfinite(number):  # of which JSON knows none
            raise InvalidRequest(f"“{text}” is no number that can be sent.")
        return number
    if is_enum(kind) and text not in list(kind):
        raise InvalidRequest(f"“{text}” is none of {', '.join(each or '“”' for each in kind)}.")
    return text


def is_number_or_name(hint: Any) -> bool:
    """Tell whether a number or a text will do."""
    if typing.get_origin(hint) is typing.Annotated:
        return is_number_or_name(hint.__origin__)
    is_union = typing.get_origin(hint) in (typing.Union, UnionType)
    return is_union and {int, str} <= set(typing.get_args(hint))


def read_yes_no(text: str) -> bool:
    """Turn ``yes`` or ``no`` into a truth.

    Raises:
        InvalidRequest: it is neither.
    """
    if text.lower() not in _YES_NO:
        raise InvalidRequest(f"“{text}” is neither yes nor no.")
    return _YES_NO[text.lower()]


def bare(hint: Any) -> Any:
    """Return the type without Annotated and without None."""
    if typing.get_origin(hint) is typing.Annotated:
        return bare(hint.__origin__)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return next(bare(kind) for kind in typing.get_args(hint) if kind is not NoneType)
    return hint


def is_enum(kind: Any) -> bool:
    """Tell whether there are only certain values of a type."""
    return isinstance(kind, enum.EnumMeta)
