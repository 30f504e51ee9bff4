"""What a JSON library finds wrong, in words for an operator."""

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from msgspec import inspect

_PATH = re.compile(r"^(?P<told>.*?)(?: - at `(?P<where>[^`]*)`)?$", re.DOTALL)
_TYPES = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
    "object": "an object", "array": "a list", "null": "nothing",
}  # fmt: skip
_BOUND = re.compile(r" ([<>]=?) (.*)")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_PATTERNS = (
    (
        re.compile(r"Object contains unknown field `(?P<name>.*)`"),
        "there is no “{name}”{within}{near}",
    ),
    (re.compile(r"Object missing required field `(?P<name>.*)`"), "“{name}” is missing{within}"),
    (
        re.compile(r"Expected `(?P<wanted>.*)`, got `(?P<found>.*)`"),
        "{here} is {wanted}, not {found}",
    ),
    (re.compile(r"Expected `str` matching regex '(?P<form>.*)'"), "{here} is {made}"),
    (re.compile(r"Expected `(?P<wanted>[^`]*)`(?P<rest> .*)?"), "{here} is {wanted}{rest}"),
    (re.compile(r"Invalid enum value (?P<value>.*)"), "{here} cannot be {value}{known}"),
)
_STEP = re.compile(r"[^.\[\]]+|\[[^\]]*\]")  # of a path: a field, or which one of a list


def in_words(complaint: str, kind: Any = None, spelled: Callable[[str], str] = str) -> str:
    """Return msgspec's words as a clause that names what is wrong; others as they are.

    Their form: ``Expected `int`, got `str` - at `$.disks[0].size```. With ``kind``, what was to be
    read, the clause also tells what there is instead; ``spelled`` says what the reader calls a
    path, as ``disks[0].size``.
    """
    match = _PATH.match(complaint)
    told = match["told"] if match else complaint
    path = ((match and match["where"]) or "").removeprefix("$").removeprefix(".")
    where = spelled(path) if path else ""
    for pattern, sentence in _PATTERNS:
        if found := pattern.fullmatch(told):
            words = {key: value or "" for key, value in found.groupdict().items()}
            words |= {key: _type(words[key]) for key in ("wanted", "found") if key in words}
            if bound := _BOUND.fullmatch(words.get("rest", "")):
                words["rest"] = f", {_BOUNDS[bound[1]]} {bound[2]}"
            within = f" in {where}" if where else ""
            words["near"] = words["known"] = ""
            if kind is not None and "{near}" in sentence:
                near = get_close_matches(words["name"], _fields(_plain_at(kind, path)), n=1)
                words["near"] = f", but “{near[0]}”" if near else ""
            if kind is not None and "{known}" in sentence:
                known = ", ".join(_values(_plain_at(kind, path)))
                words["known"] = f": there is {known}" if known else ""
            if form := words.get("form"):
                words["made"] = (kind is not None and _made(_at(kind, path))) or f"not of {form}"
            return sentence.format(here=where or "it", within=within, **words)
    return f"{where}: {told}" if where else told


def _type(text: str) -> str:
    """``int | null`` as "a whole number or nothing"."""
    return " or ".join(_TYPES.get(kind, kind) for kind in text.split(" | "))


def _at(kind: Any, path: str) -> list[inspect.Type]:
    """Return what may be at a path of a type, with what is said beside it."""
    found = list(_each(inspect.type_info(kind)))
    for step in _STEP.findall(path):
        found = [
            one for each in found for part in _parts(_plain(each), step) for one in _each(part)
        ]
    return found


def _plain_at(kind: Any, path: str) -> list[inspect.Type]:
    return [_plain(each) for each in _at(kind, path)]


def _each(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Return the types that a union is of."""
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _each(each)
    else:
        yield kind


def _plain(kind: inspect.Type) -> inspect.Type:
    """Return a type without what is said beside it."""
    return _plain(kind.type) if isinstance(kind, inspect.Metadata) else kind


def _parts(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    match kind:
        case inspect.StructType():
            yield from (field.type for field in kind.fields if field.encode_name == step)
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
            yield kind.item_type
        case inspect.TupleType():
            yield from kind.item_types
        case inspect.DictType():
            yield kind.value_type
        case _:
            pass


def _fields(kinds: Iterable[inspect.Type]) -> list[str]:
    return [
        field.encode_name
        for kind in kinds
        if isinstance(kind, inspect.StructType)
        for field in kind.fields
    ]


def _values(kinds: Iterable[inspect.Type]) -> list[str]:
    return [
        str(each.value) for kind in kinds if isinstance(kind, inspect.EnumType) for each in kind.cls
    ]


def _made(kinds: Iterable[inspect.Type]) -> str:
    """Return what texts of a pattern are made of, as is said beside it: Meta's description."""
    told = [
        str((each.extra_json_schema or {}).get("description", ""))
        for each in kinds
        if isinstance(each, inspect.Metadata)
    ]
    return " or ".join(filter(None, told))
