"""Frozen classes of named values, declared as dataclasses are, for programs that start often.

Importing ``dataclasses``, and having it write the methods of a dozen classes, takes longer than a
small request to an allocator does in all; these classes share their methods instead.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T", bound="Record")
else:

    def dataclass_transform(**_: object) -> object:
        """Tell type checkers; importing ``typing`` for that would cost what is saved."""
        return lambda declared: declared


class _Declared(type):
    """Makes the fields of a class slots of its objects.

    Attributes:
        __blank__: the default of each field, by name; None where there is none.
        __required__: those without a default.
        __setters__: what sets each in an object.
        __getter__: what gets all of them at once; None where there are fewer than two.
    """

    __blank__: dict[str, Any]
    __required__: frozenset[str]
    __setters__: tuple[Callable[[Any, Any], None], ...]
    __getter__: attrgetter[Any] | None

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Declared:
        own = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in own if field in body}
        if bases:  # the first of them has no slots, so that there is room for what is cached
            body["__slots__"] = own
        made = super().__new__(mcs, name, bases, body)
        made.__blank__ = {field: defaults.get(field) for field in own}
        made.__required__ = frozenset(own) - defaults.keys()
        made.__setters__ = tuple(getattr(made, field).__set__ for field in own)
        made.__getter__ = attrgetter(*own) if len(own) > 1 else None
        return made


@dataclass_transform(frozen_default=True)
class Record(metaclass=_Declared):
    """A class whose annotations are its fields; objects are equal if all their values are.

    Records are not derived from records. What ``cached_property`` keeps is no field.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        kind = type(self)
        fields = kind.__blank__
        if values:
            named.update(zip(fields, values, strict=False))
        given = fields | named
        is_too_much = len(given) > len(fields) or len(values) > len(fields)
        if is_too_much or not named.keys() >= kind.__required__:
            raise TypeError(f"A {kind.__name__} has {', '.join(fields)}, not {', '.join(named)}")
        for put, value in zip(kind.__setters__, given.values()):  # noqa: B905 - equally many
            put(self, value)

    def __setattr__(self, name: str, _: Any) -> None:
        raise AttributeError(f"The {name} of a {type(self).__name__} cannot be set")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        return values_of(self) == values_of(other)

    def __hash__(self) -> int:
        return hash(values_of(self))

    def __repr__(self) -> str:
        pairs = zip(type(self).__blank__, values_of(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def fields_of(kind: type[Record]) -> tuple[str, ...]:
    """The names of a class's fields, in the order in which they are declared."""
    return tuple(kind.__blank__)


def values_of(record: Record) -> tuple[Any, ...]:
    """The values of a record's fields, in the same order."""
    get = type(record).__getter__
    if get is None:
        return tuple(getattr(record, name) for name in type(record).__blank__)
    values: tuple[Any, ...] = get(record)
    return values


def replace(record: T, /, **changes: Any) -> T:
    """The record with other values in some of its fields."""
    present = zip(type(record).__blank__, values_of(record), strict=True)
    return type(record)(**{**dict(present), **changes})
