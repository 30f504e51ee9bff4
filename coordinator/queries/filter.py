"""Ganeti's query filters: JSON lists, turned into a function of a row.

    ["|", f, …]  ["&", f, …]  ["!", f]    any, all, not
    ["?", field]                          is true: neither false, 0 nor empty
    ["==", field, value]  also =, !=, <, >, <=, >=
    ["=~", field, pattern]                a regular expression (RE2's) is found in the text
    ["=[]", field, value]                 the list holds the value

What a node did not tell is unknown: such a condition is neither true nor false, nor is its
opposite, and a row is chosen only when the whole filter is true. What an object does not
have (say, a second disk) is a value that equals no other and comes before and after none.

Source: Ganeti's design document on queries, query2.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from common.errors import InvalidRequest
from common.pattern import compile_pattern
from coordinator.queries.field import Field, Kind, Missing

R = TypeVar("R")
Truth = bool | None  # None: unknown
Predicate = Callable[[R], Truth]
Comparison = Callable[[Any, Any], bool]

DEEPEST = 50  # levels
MOST_PATTERNS = 50  # in a filter: each may take memory

_ORDER: dict[str, Comparison] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_YES_NO = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
_UNKNOWN = frozenset({Missing.NO_DATA, Missing.OFFLINE, Missing.UNKNOWN_FIELD})


def compile_filter(condition: Any, fields: Mapping[str, Field[R]]) -> Predicate[R]:
    """Return what tells whether a row fits; ``condition`` None fits all.

    Raises:
        InvalidRequest: no filter, an unknown field, or a value that the field cannot have.
    """
    if _patterns_in(condition) > MOST_PATTERNS:
        raise InvalidRequest(f"A filter may have {MOST_PATTERNS} patterns, not more.")
    return _compile(condition, fields, 0)


def fields_of(condition: Any) -> Iterator[str]:
    """Yield the names of the fields that a filter looks at, some perhaps twice."""
    match condition:
        case ["|" | "&" | "!", *parts]:
            for part in parts:
                yield from fields_of(part)
        case [str(), str(field), *_]:
            yield field
        case _:
            pass


def names_asked(condition: Any, key: str) -> list[Any] | None:
    """Return the names when a filter only lists some, as clients do; None when it does more.

    Args:
        condition: the filter.
        key: the field that has the name.
    """
    match condition:
        case ["==" | "=", field, (str() | int()) as name] if field == key:
            return [name]
        case ["|", first, *others]:
            found = [names_asked(part, key) for part in (first, *others)]
            if any(names is None for names in found):
                return None
            return [name for names in found for name in names or ()]
        case _:
            return None


def _patterns_in(condition: Any) -> int:
    count, parts = 0, [condition]
    while parts:
        match parts.pop():
            case ["|" | "&" | "!", *inner]:
                parts += inner
            case ["=~", *_]:
                count += 1
            case _:
                pass
    return count


def _compile(condition: Any, fields: Mapping[str, Field[R]], depth: int) -> Predicate[R]:
    if depth > DEEPEST:
        raise InvalidRequest(f"The filter is nested more than {DEEPEST} levels deep.")
    match condition:
        case None:
            return lambda _: True
        case ["|", *parts]:
            return _any([_compile(part, fields, depth + 1) for part in parts])
        case ["&", *parts]:
            return _all([_compile(part, fields, depth + 1) for part in parts])
        case ["!", part]:
            return _not(_compile(part, fields, depth + 1))
        case ["?", str(name)]:
            return _compare(_field(name, fields), lambda value, _: bool(value), None, absent=False)
        case ["==" | "=", str(name), value]:
            field = _field(name, fields)
            return _compare(field, operator.eq, _fit(value, field), absent=False)
        case ["!=", str(name), value]:
            field = _field(name, fields)
            return _compare(field, operator.ne, _fit(value, field), absent=True)
        case ["<" | ">" | "<=" | ">=" as sign, str(name), value]:
            field = _field(name, fields)
            return _compare(field, _ORDER[sign], _fit(value, field), absent=False)
        case ["=~", str(name), str(pattern)]:
            return _search(_field(name, fields), pattern)
        case ["=[]", str(name), value]:
            return _compare(_field(name, fields), _contains, value, absent=False)
        case _:
            raise InvalidRequest(f"This is no filter: {str(condition)[:200]}.")


def _field(name: str, fields: Mapping[str, Field[R]]) -> Field[R]:
    if name not in fields:
        raise InvalidRequest(f"The filter names the field “{name}”, which does not exist.")
    return fields[name]


def _fit(value: Any, field: Field[R]) -> Any:
    """Turn ``value`` into what it can be compared with, as ``12`` for ``"12"``."""
    match field.kind, value:
        case Kind.NUMBER | Kind.FLOAT | Kind.UNIT | Kind.TIMESTAMP, str():
            try:
                return float(value)
            except ValueError:
                raise _misfit(value, field, "a number") from None
        case Kind.NUMBER | Kind.FLOAT | Kind.UNIT | Kind.TIMESTAMP, list() | dict():
            raise _misfit(value, field, "a number")
        case Kind.TEXT, value if not isinstance(value, str):
            raise _misfit(value, field, "text")
        case Kind.BOOL, str():
            if value.lower() not in _YES_NO:
                raise _misfit(value, field, "yes or no")
            return _YES_NO[value.lower()]
        case _:
            return value


def _misfit(value: Any, field: Field[R], wanted: str) -> InvalidRequest:
    return InvalidRequest(f"The field {field.name} is {wanted}; “{value}” is not.")


def _compare(field: Field[R], compare: Comparison, value: Any, *, absent: bool) -> Predicate[R]:
    """Return the predicate; ``absent`` is its value for an object that has no such thing."""
    get = field.get

    def test(row: R) -> Truth:
        found = get(row)
        if isinstance(found, Missing):
            return None if found in _UNKNOWN else absent
        try:
            return bool(compare(_seconds(found, value), value))
        except TypeError:  # a list before a number, or the like
            return False

    return test


def _seconds(found: Any, value: Any) -> Any:
    """Compare Ganeti's ``[seconds, microseconds]`` with a number as the time they are."""
    match found:
        case [int(seconds), int(microseconds)] if isinstance(value, int | float):
            return seconds + microseconds / 1_000_000
    return found


def _search(field: Field[R], pattern: str) -> Predicate[R]:
    is_found = compile_pattern(pattern)

    def search(value: Any, _: Any) -> bool:
        return isinstance(value, str) and is_found(value)

    return _compare(field, search, None, absent=False)


def _contains(found: Any, value: Any) -> bool:
    return isinstance(found, list | tuple) and value in found


def _any(parts: list[Predicate[R]]) -> Predicate[R]:
    def test(row: R) -> Truth:
        unknown = False
        for part in parts:
            truth = part(row)
            if truth:
                return True
            unknown |= truth is None
        return None if unknown else False

    return test


def _all(parts: list[Predicate[R]]) -> Predicate[R]:
    def test(row: R) -> Truth:
        unknown = False
        for part in parts:
            truth = part(row)
            if truth is False:
                return False
            unknown |= truth is None
        return None if unknown else True

    return test


def _not(part: Predicate[R]) -> Predicate[R]:
    def test(row: R) -> Truth:
        truth = part(row)
        return None if truth is None else not truth

    return test
