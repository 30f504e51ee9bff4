"""JSON values as YAML, for people who read what programs could: block style, keys in order."""

from collections.abc import Iterator
from typing import Any

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./ -")
_WORDS = frozenset({"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "-"})


def to_yaml(value: Any) -> str:
    """Return the text, ending in a line end; JSON readers of YAML give the same value back."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    match value:
        case dict() if value:
            for key, inner in value.items():
                yield from _entry(f"{_scalar(str(key))}:", inner)
        case list() | tuple() if value:
            for inner in value:
                first, *rest = _lines(inner)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
        case _:
            yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and value:
        yield key
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{key} {_scalar(value)}"


def _scalar(value: Any) -> str:
    """Text stays bare where no reader could take it for anything else; the rest is JSON."""
    if isinstance(value, str) and _is_plain(value):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    return (
        text.lower() not in _WORDS
        and _PLAIN.issuperset(text)
        and text[0].isalpha()
        and text == text.strip()
    )
