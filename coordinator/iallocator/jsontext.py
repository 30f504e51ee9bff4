"""JSON as the protocol needs it: the order of keys counts, and numbers stay exact."""

import json
from decimal import Decimal
from typing import Any, NoReturn

from common.errors import InvalidRequest

_BEGINNING = "Parsing input IAllocator message: "


class Repeated(dict[str, Any]):
    """An object in which a key comes more than once; the first one counts.

    Attributes:
        pairs: all keys and values in order.
    """

    pairs: list[tuple[str, Any]]


def parse(text: str) -> Any:
    """Read a JSON object or array; numbers with a fraction or exponent become ``Decimal``.

    Raises:
        InvalidRequest: it is no JSON; says where it goes wrong.
    """
    if not text.startswith(("{", "[")):
        raise InvalidRequest(
            f"{_BEGINNING}Invalid JSON: a JSON text a serialized object or array at the top level."
        )
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=Decimal,
            parse_constant=_refuse,
        )
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{_BEGINNING}Malformed JSON: {error}") from error
    except RecursionError as error:
        raise InvalidRequest(f"{_BEGINNING}it is nested too deeply.") from error
    except (ValueError, ArithmeticError) as error:
        raise InvalidRequest(f"{_BEGINNING}it holds a number nobody can read.") from error


def pairs_of(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """Keys and values in the order of the text, repeated ones included."""
    return values.pairs if isinstance(values, Repeated) else list(values.items())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    repeated = Repeated()
    for key, value in pairs:
        repeated.setdefault(key, value)
    repeated.pairs = pairs
    return repeated


def _refuse(name: str) -> NoReturn:
    raise InvalidRequest(f"{_BEGINNING}Malformed JSON: invalid token in this context {name}")
