"""Values as a client that is broken, or evil, may send them."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from msgspec import inspect as info

PLAIN: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**70, -(2**63), 1.5, 1e308, "", "web1", "alpha", "name", "create",
    "\x00", "\ud800", "😀" * 50, "1", "0", "../..", "00000000-0000-4000-8000-000000000000", [], {},
    ["=", "name", "web1"], [["jobid", [">", "id", 1]]], {"size": 64}, [{"size": "64"}], [[]],
    ["name", "status"], [[[[[]]]]], {"": ""}, [1, "a", None],
)  # fmt: skip


def any_value(random: Random, depth: int = 0) -> Any:
    """Return something that JSON can say."""
    if depth < 3 and random.random() < 0.3:
        parts = [any_value(random, depth + 1) for _ in range(random.randrange(4))]
        words = [each for each in PLAIN if isinstance(each, str)]
        return parts if random.random() < 0.5 else {random.choice(words): part for part in parts}
    return random.choice(PLAIN)


def spoiled(value: Any, random: Random) -> Any:
    """Return something good with one part of it, or all, replaced."""
    match value:
        case list() if value and random.random() < 0.8:
            at = random.randrange(len(value))
            return [*value[:at], spoiled(value[at], random), *value[at + 1 :]]
        case dict() if value and random.random() < 0.8:
            key = random.choice([*value])
            changed = {**value, key: spoiled(value[key], random)}
            return {name: each for name, each in changed.items() if random.random() < 0.95}
        case _:
            return any_value(random)


def typed(kind: info.Type, random: Random, words: Sequence[str]) -> Any:
    """Return something of a type that msgspec describes, or nearly so: bounds are not heeded.

    Args:
        kind: the type.
        random: chooses.
        words: texts that mean something to who reads them.
    """
    if (plain := _PLAIN.get(type(kind))) is not None:
        return random.choice(plain)
    match kind:
        case info.StrType():
            return random.choice(words)
        case info.EnumType():
            return random.choice([each.value for each in kind.cls])
        case info.LiteralType():
            return random.choice(kind.values)
        case info.UnionType():
            return typed(random.choice(kind.types), random, words)
        case info.ListType() | info.VarTupleType() | info.SetType() | info.FrozenSetType():
            return [typed(kind.item_type, random, words) for _ in range(random.randrange(3))]
        case info.TupleType():
            return [typed(each, random, words) for each in kind.item_types]
        case info.DictType():
            keys = (typed(kind.key_type, random, words) for _ in range(random.randrange(3)))
            return {str(key): typed(kind.value_type, random, words) for key in keys}
        case info.StructType():
            tag = {} if kind.tag is None else {str(kind.tag_field): kind.tag}
            given = (each for each in kind.fields if each.required or random.random() < 0.5)
            return tag | {each.encode_name: typed(each.type, random, words) for each in given}
        case _:
            return any_value(random)


_PLAIN: Mapping[type, tuple[Any, ...]] = {
    info.BoolType: (False, True),
    info.IntType: (0, 1, 2, 5, 64, 1000, -1, 2**40),
    info.FloatType: (0.0, 1.0, 1e6, -1.0),
    info.BytesType: ("", "AAAA", "e30="),
}
