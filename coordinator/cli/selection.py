"""Which objects a command is about: names, globs, or a property that they have.

Source: gnt-instance(8), section “Startup”: --all, --primary, --tags and their like.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from common.errors import InvalidRequest, NotFound
from common.luxi.client import Client
from coordinator.cli.names import full_names
from coordinator.queries.text import is_glob, name_filter

Row = dict[str, Any]


class Chosen(NamedTuple):
    """Names of objects; ``named`` when the operator typed each of them, perhaps shortened."""

    names: tuple[str, ...]
    named: bool


class _Way(NamedTuple):
    """One option; ``fits`` tells whether an object has what the words ask for."""

    flag: str
    help: str
    fits: Callable[[Row, set[str]], bool]
    nodes: str = ""  # words are nodes: names, or tags


def _is_on(row: Row, nodes: set[str]) -> bool:
    return row["pnode"] in nodes


def _is_mirrored_on(row: Row, nodes: set[str]) -> bool:
    return bool(nodes.intersection(row["snodes"] or ()))


def _is_at(row: Row, nodes: set[str]) -> bool:
    return _is_on(row, nodes) or _is_mirrored_on(row, nodes)


def _has_a_tag(row: Row, tags: set[str]) -> bool:
    return not tags.isdisjoint(row["tags"])


_OF_INSTANCES = (
    _Way("--all", "all instances", lambda *_: True),
    _Way("--node", "those on these nodes, mirrors included", _is_at, "names"),
    _Way("--primary", "those that run on these nodes", _is_on, "names"),
    _Way("--secondary", "those mirrored on these nodes", _is_mirrored_on, "names"),
    _Way("--tags", "those with one of these tags", _has_a_tag),
    _Way("--node-tags", "those on nodes with one of these tags", _is_at, "tags"),
    _Way("--pri-node-tags", "those that run on nodes with one of these tags", _is_on, "tags"),
    _Way("--sec-node-tags", "those mirrored on nodes with such a tag", _is_mirrored_on, "tags"),
)
_OF_NODES = (
    _Way("--all", "all nodes", lambda *_: True),
    _Way("--tags", "those with one of these tags", _has_a_tag),
)
_WAYS = {"instance": _OF_INSTANCES, "node": _OF_NODES}
_FIELDS = {
    "instance": ("name", "pnode", "snodes", "tags", "forthcoming"),
    "node": ("name", "tags"),
}


def add_selection(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add the options that say what the command's words are; without one, they are names.

    Args:
        parser: to add them to.
        kind: of the objects, as "instance".
    """
    group = parser.add_argument_group(f"which {kind}s")
    ways = group.add_mutually_exclusive_group()
    ways.add_argument(
        f"--{kind}",
        dest="way",
        action="store_const",
        const=None,
        help="those of these names; * ? [a-c] stand for some (default)",
    )
    for number, way in enumerate(_WAYS[kind]):
        ways.add_argument(way.flag, dest="way", action="store_const", const=number, help=way.help)
    group.add_argument("--force-multiple", action="store_true", help="do not ask about several")


def choose(
    client: Client,
    kind: str,
    words: Sequence[str],
    way: int | None,
    *,
    exist: bool = False,
    reserved: bool = True,
) -> Chosen:
    """Return what was chosen, asking the coordinator only if need be.

    Args:
        client: whom to ask.
        kind: of the objects, as "instance".
        words: of the command line.
        way: what they are, as ``add_selection`` has it.
        exist: see first that there are objects of these names.
        reserved: choose instances that are only reserved, too; who names one gets it in any case.

    Raises:
        InvalidRequest: no words where there should be, or the other way round.
        NotFound: nothing fits.
    """
    if way is None:
        if not words:
            raise InvalidRequest(f"Say which {kind}s: names, globs as web*, or --all; see --help.")
        return _by_name(client, kind, words, exist=exist, reserved=reserved)
    chosen = _WAYS[kind][way]
    if (chosen.flag == "--all") == bool(words):
        raise InvalidRequest(
            "--all takes no names." if words else f"Say which: {chosen.flag} takes names."
        )
    wanted = set(_nodes(client, words, chosen.nodes) if chosen.nodes else words)
    by = " ".join((chosen.flag, *words))
    rows = [row for row in _ask(client, kind, _FIELDS[kind]) if chosen.fits(row, wanted)]
    if not rows:
        raise NotFound(f"No {kind} is chosen by {by}.")
    return Chosen(tuple(_names(rows, by, reserved=reserved)), named=False)


def _names(rows: Sequence[Row], by: str, *, reserved: bool) -> list[str]:
    """Return the names of those that a command is for; ``by`` is what chose them."""
    names = [row["name"] for row in rows if reserved or not row.get("forthcoming")]
    if not names:
        raise NotFound(f"All that is chosen by {by} is only reserved.")
    return names


def _by_name(
    client: Client, kind: str, words: Sequence[str], *, exist: bool, reserved: bool
) -> Chosen:
    if not any(map(is_glob, words)):
        # A wrong name among several is told before anything is done to the others.
        names = full_names(client, kind, words) if exist or len(words) > 1 else words
        return Chosen(tuple(dict.fromkeys(names)), named=True)
    chosen: list[str] = []
    for word in words:
        if not is_glob(word):
            chosen += full_names(client, kind, [word])
            continue
        condition = name_filter([word], "name", force=False)
        rows = _ask(client, kind, _FIELDS[kind], condition)
        if not rows:
            raise NotFound(f"No {kind} fits “{word}”.")
        chosen += _names(rows, f"“{word}”", reserved=reserved)
    return Chosen(tuple(dict.fromkeys(chosen)), named=False)


def _nodes(client: Client, words: Sequence[str], what: str) -> list[str]:
    """Return the whole names of nodes."""
    if what == "tags":
        rows = _ask(client, "node", ("name", "tags"))
        return [row["name"] for row in rows if set(words) & set(row["tags"])]
    found = []
    for word in words:
        condition = name_filter([word], "name", force=False)
        rows = _ask(client, "node", ("name",), condition)
        if not rows:
            raise NotFound(f"No node fits “{word}”.")
        found += [row["name"] for row in rows]
    return found


def _ask(client: Client, what: str, fields: Sequence[str], condition: Any = None) -> list[Row]:
    told = client.call("Query", what, list(fields), condition)
    return [
        {field: value for field, (_, value) in zip(fields, row, strict=True)}
        for row in told["data"]
    ]
