"""Reading one JSON object key by key; complaints are worded as hail words them."""

from __future__ import annotations

import math

from common.errors import InvalidRequest
from coordinator.iallocator.jsontext import Written, pairs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

_LARGEST = 2**63


class Unreadable(Exception):
    """A value is not of the type asked for; the message says which that is."""


class Fields:
    """An object of the message, and what it is, for complaints."""

    __slots__ = ("values", "what")

    def __init__(self, values: dict[str, Any], what: str) -> None:
        self.values, self.what = values, what

    @classmethod
    def of(cls, value: Any, what: str) -> Fields:
        if not isinstance(value, dict):
            raise InvalidRequest(f"{what}: Unable to read JSObject")
        return cls(value, what)

    def get(self, key: str, read: Callable[[Any], T]) -> T:
        """Read a value that has to be there.

        Raises:
            InvalidRequest: there is none, or ``read`` raised Unreadable for it.
        """
        try:
            return value_in(self.values, key, read, "key '{}'")
        except Unreadable as error:
            raise InvalidRequest(f"{self.what}: {error}") from error

    def find(self, key: str, read: Callable[[Any], T]) -> T | None:
        """Read a value that may be absent or null."""
        return None if self.values.get(key) is None else self.get(key, read)

    def inside(self, key: str, what: str = "") -> Fields:
        """Read an object that has to be there."""
        return Fields(self.get(key, an_object), what or self.what)


def value_in(
    values: dict[str, Any],
    key: str,
    read: Callable[[Any], T],
    what: str = "Can't parse value for '{}'",
) -> T:
    """Read a value that has to be in an object; ``what`` it is has {} for its key.

    Raises:
        Unreadable: there is none, or ``read`` raised that for it.
    """
    if key not in values:
        there = ",".join(f'"{name}"' for name, _ in pairs_of(values))
        raise Unreadable(f"key '{key}' not found, object contains only [{there}]")
    try:
        return read(values[key])
    except Unreadable as error:
        raise Unreadable(f"{what.format(key)}: {error}") from error


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable("Unable to read String")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unreadable("Unable to read Bool")
    return value


def whole(value: Any) -> int:
    """An integer of 64 bits; fractions are rounded to even, what is larger wraps around."""
    if isinstance(value, bool) or not isinstance(value, int | Written):
        raise Unreadable("Unable to read Int")
    if isinstance(value, Written):
        value = _rounded(value)
    wrapped: int = (int(value) + _LARGEST) % (2 * _LARGEST) - _LARGEST
    return wrapped


def _rounded(value: Written) -> int:
    from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation  # seldom needed, and slow

    try:
        exact = Decimal(value.text)
    except InvalidOperation as error:  # the exponent has 19 digits or more
        raise Unreadable("Unable to read Int") from error
    if exact.adjusted() > 4000:
        raise Unreadable("Unable to read Int")
    return int(exact.to_integral_value(rounding=ROUND_HALF_EVEN))


def real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Written):
        raise Unreadable("Unable to read Double")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def an_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable("Unable to read JSObject")
    return value


def list_of(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A reader of lists."""

    def read_list(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unreadable("Unable to read list")
        return tuple(map(read, value))

    return read_list


texts = list_of(text)


def one_of(kind: str, known: Callable[[str], T]) -> Callable[[Any], T]:
    """A reader of names out of an enumeration that hail calls ``kind``."""

    def read(value: Any) -> T:
        name = text(value)
        try:
            return known(name)
        except (KeyError, ValueError) as error:
            raise Unreadable(f'Invalid string value for type {kind}: "{name}"') from error

    return read
