"""The commands that print a table: ``list`` and ``list-fields`` of every area."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from common.errors import GntError, InvalidRequest
from coordinator.cli.cell import RIGHT, cell
from coordinator.cli.colour import paint, status_colour
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_list_options, add_table_options
from coordinator.cli.table import table
from coordinator.cli.telling import write

Definition = dict[str, str]
Entry = tuple[int, Any]


class UnknownField(GntError):
    """A list was asked for a field that does not exist."""

    code = "unknown-field"
    exit_code = 14


class Listing(NamedTuple):
    """What a program lists: the kind, the usual fields, and the variable that changes them."""

    what: str
    key: str
    usual: str
    variable: str = ""


_LISTINGS = {
    "gnt-instance": Listing(
        "instance", "name", "name,hypervisor,os,pnode,status,oper_ram", "GNT_INSTANCE_LIST"
    ),
    "gnt-node": Listing(
        "node", "name", "name,dtotal,dfree,mtotal,mnode,mfree,pinst_cnt,sinst_cnt", "GNT_NODE_LIST"
    ),
    "gnt-job": Listing("job", "id", "id,status,summary"),
    "gnt-debug": Listing("lock", "name", "name,mode,owner,pending"),
}
_JOB_STATES = {
    "pending": ("queued", "waiting", "canceling"),
    "running": ("running",),
    "error": ("error",),
    "finished": ("canceled", "success", "error"),
}
_MOMENTS = ("received_ts", "start_ts", "end_ts", "opstart", "opexec", "opend")
_SHOWN_AS = dict.fromkeys(_MOMENTS, "moment") | {"pending": "waiters"}
_KINDS = {  # of fields, in words
    "unknown": "Unknown",
    "text": "Text",
    "bool": "Boolean",
    "number": "Number",
    "float": "Floating-point number",
    "unit": "Storage size",
    "timestamp": "Timestamp",
    "other": "Custom",
}


def list_objects(command: str, words: Sequence[str]) -> int:
    """``gnt-instance list`` and ``gnt-node list``."""
    listing = _LISTINGS[command.split()[0]]
    parser = Parser(command, f"List {listing.what}s, all of them or those named.")
    parser.add_argument("names", nargs="*", metavar=listing.what.upper(),
                        help="name, glob or filter")  # fmt: skip
    add_list_options(parser)
    options = parser.parse_args(words)
    return _show(listing, _condition(options, listing), options)


def list_jobs(command: str, words: Sequence[str]) -> int:
    """``gnt-job list``."""
    listing = _LISTINGS["gnt-job"]
    parser = Parser(command, "List jobs, those named or all that are not archived.")
    parser.add_argument("names", nargs="*", metavar="JOB", help="number, or a filter")
    add_list_options(parser)
    for state in _JOB_STATES:
        parser.add_argument(f"--{state}", action="store_true", help=f"only {state} jobs")
    parser.add_argument("--archived", action="store_true", help="only archived jobs")
    options = parser.parse_args(words)
    if options.pending or options.running:
        listing = listing._replace(usual=f"{listing.usual},waits")
    wanted = [s for name, states in _JOB_STATES.items() if getattr(options, name) for s in states]
    conditions = [
        _condition(options, listing),
        ["|", *(["==", "status", status] for status in wanted)] if wanted else None,
        ["?", "archived"] if options.archived else None,
    ]
    given = [condition for condition in conditions if condition is not None]
    return _show(listing, given[0] if len(given) == 1 else ["&", *given] if given else None,
                 options)  # fmt: skip


def list_locks(command: str, words: Sequence[str]) -> int:
    """``gnt-debug locks``."""
    parser = Parser(command, "List the locks that jobs hold or wait for.")
    add_list_options(parser)
    return _show(_LISTINGS["gnt-debug"], None, parser.parse_args(words))


def list_fields(command: str, words: Sequence[str]) -> int:
    """``list-fields`` of every area that has a list."""
    parser = Parser(command, "Tell what the list can show, and filter by.")
    parser.add_argument("names", nargs="*", metavar="FIELD", help="only these")
    add_table_options(parser)
    options = parser.parse_args(words)
    with connect() as client:
        told = client.call("QueryFields", _LISTINGS[command.split()[0]].what, options.names or None)
    definitions = _definitions(told)
    if options.json:
        write(options.json, definitions, indent=2)
        return 0
    rows = [
        (field["name"], _KINDS.get(field["kind"], "?"), field["title"], field["doc"])
        for field in definitions
    ]
    titles = None if options.no_headers else ("Name", "Type", "Title", "Description")
    _print(table(titles, rows, right=(False,) * 4, separator=options.separator))
    return _check_known(definitions)


def query(
    what: str, fields: Sequence[str], condition: Any
) -> tuple[list[Definition], list[list[Entry]]]:
    """Ask the coordinator; return definitions of the fields, and ``(status, value)`` rows.

    Raises:
        GntError: as the coordinator raised it, or its answer is of another form.
    """
    with connect() as client:
        told = client.call("Query", what, list(fields), condition)
    try:
        rows = [[(int(status), value) for status, value in row] for row in told["data"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error
    return _definitions(told), rows


def as_objects(
    definitions: Sequence[Definition], rows: Sequence[Sequence[Entry]]
) -> list[dict[str, Any]]:
    """Return one dict a row; what has no value is None."""
    names = [field["name"] for field in definitions]
    return [
        {name: None if status else value for name, (status, value) in zip(names, row, strict=True)}
        for row in rows
    ]


def _condition(options: argparse.Namespace, listing: Listing) -> Any:
    if not options.names and not options.filter:
        return None
    from coordinator.queries.text import name_filter

    return name_filter(
        options.names, listing.key, force=options.filter, numeric=listing.what == "job"
    )


def _show(listing: Listing, condition: Any, options: argparse.Namespace) -> int:
    definitions, rows = query(listing.what, _fields(listing, options.output), condition)
    if options.json:
        write(options.json, as_objects(definitions, rows), indent=2)
        return _check_known(definitions)
    kinds = [_SHOWN_AS.get(field["name"], field["kind"]) for field in definitions]
    units = options.units or ("h" if options.separator is None else "m")
    cells = [
        [
            cell(status, value, kind, units=units, verbose=options.verbose)
            for (status, value), kind in zip(row, kinds, strict=True)
        ]
        for row in rows
    ]
    titles = None if options.no_headers else [field["title"] for field in definitions]
    right = [kind in RIGHT for kind in kinds]
    status = next((n for n, field in enumerate(definitions) if field["name"] == "status"), None)

    def dye(column: int, padded: str) -> str:
        if column != status:
            return padded
        return paint(padded, status_colour(padded.strip()), sys.stdout)

    _print(table(titles, cells, right=right, separator=options.separator, dye=dye))
    return _check_known(definitions)


def _fields(listing: Listing, output: str | None) -> list[str]:
    usual = os.environ.get(listing.variable) or listing.usual if listing.variable else listing.usual
    if output is None:
        return usual.split(",")
    if output.startswith("+"):
        return [*usual.split(","), *output[1:].split(",")]
    return output.split(",")


def _definitions(told: Any) -> list[Definition]:
    try:
        return [
            {key: str(field[key]) for key in ("name", "title", "kind", "doc")}
            for field in told["fields"]
        ]
    except (KeyError, TypeError) as error:
        raise _unreadable() from error


def _unreadable() -> GntError:
    return InvalidRequest(
        "The coordinator's answer is not of the form agreed on; are both of the same version?"
    )


def _check_known(definitions: Sequence[Definition]) -> int:
    unknown = [field["name"] for field in definitions if field["kind"] == "unknown"]
    if unknown:
        sys.stdout.flush()
        raise UnknownField(f"Unknown fields: {', '.join(unknown)}; see “list-fields”.")
    return 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
