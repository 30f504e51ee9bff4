"""How objects are shown by ``info`` commands: what is their own, and what nodes do not tell."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.cli.asking import Answer, query
from coordinator.cli.cell import cell, format_time
from coordinator.cli.last_known import MARK, read_last_known
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import write
from coordinator.cli.tree import tree


def named(names: Sequence[str]) -> Any:
    """Return the filter that finds the objects of these names; none finds all."""
    return ["|", *(["==", "name", name] for name in names)] if names else None


def show_some(
    command: str,
    words: Sequence[str],
    kind: str,
    several: str,
    fields: Sequence[str],
    describe: Any,
) -> int:
    """Show the objects of a kind that are named, or all."""
    parser = Parser(command, f"Show all about {several}, or about those named.")
    parser.add_argument(
        "names", nargs="*", metavar=kind.upper(), help=f"its name; none: all {kind}s"
    )
    add_json(parser)
    options = parser.parse_args(words)
    return show(query(kind, fields, named(options.names)), describe, form=options.json)


def show(answer: Answer, describe: Any, *, form: str) -> int:
    """Print what was found, as JSON if asked for; return the exit code."""
    objects = answer.as_objects()
    if form:
        write(form, objects, indent=2)
        return 0
    print("\n\n".join("\n".join(tree(describe(told))) for told in objects))
    return 0


def identity(told: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what every object has beside its name."""
    return {
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
    }


def marked(merged: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """Tell which parameters are the object's own, as Ganeti does."""
    return {
        key: str(value) if key in own else f"default ({value})" for key, value in merged.items()
    }


def known(told: Mapping[str, Any], field: str, kind: str = "other") -> str | None:
    """Write what a node tells, or told before, marked as old; None if that is nothing."""
    if told[field] is not None:
        return cell(0, told[field], kind)
    last = read_last_known(told.get("last_known"))
    old = None if last is None else last.values.get(field)
    return None if old is None else cell(0, old, kind) + MARK


def silence(told: Mapping[str, Any]) -> dict[str, str]:
    """Say why values are old or unknown, if a node does not answer."""
    last = read_last_known(told.get("last_known"))
    return {} if last is None else {"No answer": last.explain()}
