"""JSON as the protocol needs it: the order of keys counts, and numbers stay exact."""

from __future__ import annotations

# What ``json`` is made of; importing that would cost 6 ms for its regular expressions.
from _json import encode_basestring, make_encoder, make_scanner

from common.errors import InvalidRequest
from common.record import Record, values_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self

_BEGINNING = "Parsing input IAllocator message: "


class Repeated(dict[str, "Any"]):
    """An object in which a key comes more than once; the first one counts.

    Attributes:
        pairs: all keys and values in order.
    """

    pairs: list[tuple[str, Any]]


class Written(float):
    """A number with a fraction or an exponent; ``text`` is how it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


class _Context:
    """What the scanner asks for."""

    strict = True
    object_hook = None
    parse_float = Written
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def object_pairs_hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        repeated = Repeated()
        for key, value in pairs:
            repeated.setdefault(key, value)
        repeated.pairs = pairs
        return repeated

    @staticmethod
    def parse_constant(name: str) -> NoReturn:
        raise InvalidRequest(f"{_BEGINNING}Malformed JSON: invalid token in this context {name}")


_CONTEXT: Any = _Context  # whose type is not to be had


def parse(text: str) -> Any:
    """Read a JSON object or array; numbers with a fraction or exponent become ``Written``.

    Raises:
        InvalidRequest: it is no JSON; says where it goes wrong.
    """
    if not text.startswith(("{", "[")):
        raise InvalidRequest(
            f"{_BEGINNING}Invalid JSON: a JSON text a serialized object or array at the top level."
        )
    try:
        value, end = _scan(text)
    except StopIteration as error:
        raise InvalidRequest(
            f"{_BEGINNING}Malformed JSON: {_where('Expecting value', text, error.value)}"
        ) from None
    except RecursionError as error:
        raise InvalidRequest(f"{_BEGINNING}it is nested too deeply.") from error
    except (ValueError, ArithmeticError) as error:
        if hasattr(error, "lineno"):  # the one that ``json`` raises
            raise InvalidRequest(f"{_BEGINNING}Malformed JSON: {error}") from error
        raise InvalidRequest(f"{_BEGINNING}it holds a number nobody can read.") from error
    rest = text[end:].lstrip(" \t\n\r")
    if rest:
        problem = _where("Extra data", text, len(text) - len(rest))
        raise InvalidRequest(f"{_BEGINNING}Malformed JSON: {problem}")
    return value


def _scan(text: str) -> tuple[Any, int]:
    try:
        return make_scanner(_CONTEXT)(text, 0)
    except SystemError:  # its way to complain is in a module that has to be there already
        import json.decoder  # noqa: F401

        return make_scanner(_CONTEXT)(text, 0)


def _where(problem: str, text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"{problem}: line {line} column {at - text.rfind(chr(10), 0, at)} (char {at})"


def pairs_of(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """Keys and values in the order of the text, repeated ones included."""
    return values.pairs if isinstance(values, Repeated) else list(values.items())


def written(value: Any) -> str:
    """JSON without spaces; characters beyond ASCII as they are. Records are lists of values."""
    return "".join(_encode(value, 0))


def _listed(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, Record):
        raise TypeError(f"{value!r} is nothing that JSON can say")
    return values_of(value)


_encode = make_encoder(None, _listed, encode_basestring, None, ":", ",", False, False, True)  # noqa: FBT003 - C takes no names
