"""What is on the wire is written down: a change shows as a difference, and is made on purpose."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

_WORDS = {"string": "text", "integer": "whole number"}
_NO_LIMITS = frozenset({"default", "title", "description"})  # words for people may change


def check_golden(path: Path, text: str, *, update: bool) -> None:
    """Compare with what was written down, or write it."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if update:
        path.write_text(text, encoding="utf-8")
    elif text != before:
        _fail(path, before, text)


def _fail(path: Path, before: str, now: str) -> NoReturn:
    lines = unified_diff(before.splitlines(), now.splitlines(), "as it was", "as it is", n=1)
    pytest.fail(
        f"{path.name} says something else. If the change is meant, run this test with "
        "--update-golden and commit the difference:\n" + "\n".join(lines),
        pytrace=False,
    )


class Schemas:
    """The schemas of messages, one line a field; what they refer to is told once, at the end."""

    def __init__(
        self, messages: Sequence[type[msgspec.Struct]], others: Sequence[Any] = ()
    ) -> None:
        told, self._named = msgspec.json.schema_components(
            (*messages, *others), ref_template="{name}"
        )
        self._messages = {kind.__name__ for kind in messages}
        self._others = dict(zip(map(repr, others), told[len(messages) :], strict=True))

    def other(self, kind: Any) -> str:
        """Return a type on one line, as ``[DiskReport | null]``."""
        return _type(self._others[repr(kind)])

    def fields(self, message: type[msgspec.Struct]) -> Iterator[str]:
        """Yield a line for each field, as ``disks: [DiskSpec] = []``."""
        yield from _fields(self._named[message.__name__])

    def referred_to(self) -> Iterator[str]:
        """Yield all that fields refer to, each with its own."""
        yield "with"
        for name, schema in sorted(self._named.items()):
            if name in self._messages:
                continue
            yield ""
            if "properties" in schema:
                strict = schema.get("additionalProperties") is False
                yield name if strict else f"{name}, and what else there may be"
                yield from _fields(schema)
            else:
                yield f"{name} is {_type(schema)}"


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, told in schema["properties"].items():
        default = f" = {json.dumps(told['default'])}" if "default" in told else ""
        must = "" if default or name in schema.get("required", ()) else ", or left out"
        yield f"  {name}: {_type(told)}{default}{must}"


def _type(schema: Mapping[str, Any]) -> str:
    """Return a type as ``[text]`` or ``whole number (minimum 0) | null``."""
    rest = {key: value for key, value in schema.items() if key not in _NO_LIMITS}
    text = _take_kind(rest)
    limits = [f"{key} {json.dumps(value)}" for key, value in rest.items()]
    return f"{text} ({', '.join(limits)})" if limits else text


def _take_kind(rest: dict[str, Any]) -> str:
    """Return what kind of value it is, and leave what limits it."""
    if "$ref" in rest:
        return str(rest.pop("$ref"))
    if "anyOf" in rest:
        return " | ".join(map(_type, rest.pop("anyOf")))
    kind = rest.pop("type", "anything")
    if "enum" in rest:
        return " | ".join(map(json.dumps, rest.pop("enum")))
    if "prefixItems" in rest:
        inner = rest.pop("prefixItems")
        for key in ("items", "minItems", "maxItems"):
            rest.pop(key, None)
        return f"({', '.join(map(_type, inner))})"
    if kind == "array":
        return f"[{_type(rest.pop('items', {}))}]"
    if kind == "object":
        keys = {"type": "string", **rest.pop("propertyNames", {})}
        return f"{{{_type(keys)}: {_type(rest.pop('additionalProperties', {}))}}}"
    return _WORDS.get(kind, str(kind))


class Masked:
    """Values of the wire without what chance and the clock have in them."""

    _UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    _KEY = re.compile(r"\b[0-9a-f]{64}\b")
    _MAC = re.compile(r"\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b")

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case int() | float() if 1.5e9 < value < 5e9:
                return "TIME"
            case float():
                return round(value, 2)  # delays of the simulation are milliseconds
            case [int(seconds), int()] if 1.5e9 < seconds < 5e9:
                return "TIME"
            case dict():
                return {self(key): self(each) for key, each in value.items()}
            case list():
                return [self(each) for each in value]
            case str():
                named = self._KEY.sub("KEY", self._UUID.sub(self._numbered, value))
                return self._MAC.sub("MAC", named)
            case _:
                return value

    def _numbered(self, found: re.Match[str]) -> str:
        return self._uuids.setdefault(found[0], f"UUID-{len(self._uuids) + 1}")
