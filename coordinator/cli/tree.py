"""Nested values as indented text that is also YAML for simple cases, as ``info`` commands print."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coordinator.cli.cell import plain


def tree(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines: ``key: value``; dicts below their key, lists with dashes."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield f"{indent}{key}:"
            yield from tree(inner, indent + "  ")
        elif isinstance(inner, Sequence) and not isinstance(inner, str) and inner:
            yield f"{indent}{key}:"
            yield from _items(inner, indent + "  ")
        else:
            yield f"{indent}{key}: {_leaf(inner)}".rstrip()


def _items(items: Sequence[Any], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *others = tree(item, indent + "  ")
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from others
        else:
            yield f"{indent}- {_leaf(item)}"


def _leaf(value: Any) -> str:
    match value:
        case None | {} | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return plain(value)
