"""The commands that print a table: ``list`` and ``list-fields`` of every area."""

import argparse
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from common.errors import GntError, InvalidRequest
from coordinator.cli.asking import Answer, Definition, query, read_definitions
from coordinator.cli.cell import RIGHT, cell
from coordinator.cli.colour import paint, status_colour
from coordinator.cli.connection import connect
from coordinator.cli.last_known import FIELD, MARK, explanations, old_value
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser, add_list_options, add_table_options
from coordinator.cli.table import table
from coordinator.cli.telling import write

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 86_400.0  # between two lists


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
    "gnt-group": Listing("group", "name", "name,node_cnt,pinst_cnt,alloc_policy,ndparams"),
    "gnt-network": Listing("network", "name", "name,network,gateway,mac_prefix,group_list,tags"),
    "gnt-job": Listing("job", "id", "id,status,summary"),
    "gnt-filter": Listing(
        "filter", "uuid", "uuid,watermark,priority,predicates,action,reason_trail"
    ),
    "gnt-backup": Listing("export", "export", "node,export"),
    "gnt-debug": Listing("lock", "name", "name,mode,owner,pending"),
}
_JOB_STATES = {
    "pending": ("queued", "waiting", "canceling"),
    "running": ("running",),
    "error": ("error",),
    "finished": ("canceled", "success", "error"),
}
_MOMENTS = ("received_ts", "start_ts", "end_ts", "opstart", "opexec", "opend")
_SHOWN_AS = dict.fromkeys(_MOMENTS, "moment") | {"pending": "waiters", FIELD: "age"}
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
    """``gnt-instance list``, ``gnt-node list`` and their like."""
    listing = _LISTINGS[command.split()[0]]
    parser = Parser(command, f"List {listing.what}s, all of them or those named.")
    parser.add_argument(
        "names", nargs="*", metavar=listing.what.upper(), help="name, glob or filter"
    )
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
        _condition(options, listing, further=bool(wanted or options.archived)),
        ["|", *(["==", "status", status] for status in wanted)] if wanted else None,
        ["?", "archived"] if options.archived else None,
    ]
    given = [condition for condition in conditions if condition is not None]
    return _show(
        listing, given[0] if len(given) == 1 else ["&", *given] if given else None, options
    )


def list_exports(command: str, words: Sequence[str]) -> int:
    """``gnt-backup list``."""
    parser = Parser(command, "List exports, by node.")
    parser.add_argument("-n", "--node", action="append", metavar="NODE", help="only on this node")
    add_list_options(parser)
    options = parser.parse_args(words)
    names: list[str] = []
    if options.node:
        with connect() as client:
            names = full_names(client, "node", options.node)
    nodes = [["==", "node", name] for name in names]
    return _show(_LISTINGS["gnt-backup"], ["|", *nodes] if nodes else None, options)


def list_locks(command: str, words: Sequence[str]) -> int:
    """``gnt-debug locks``."""
    parser = Parser(command, "List the locks that jobs hold or wait for.")
    parser.add_argument(
        "--interval", type=_pause, metavar="SECONDS", help="list them again and again, so far apart"
    )
    add_list_options(parser)
    options = parser.parse_args(words)
    code = _show(_LISTINGS["gnt-debug"], None, options)
    while options.interval is not None and code == 0:
        time.sleep(options.interval)  # noqa: TID251 -- a command has no loop
        print()
        code = _show(_LISTINGS["gnt-debug"], None, options)
    return code


def _pause(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not SHORTEST_PAUSE_S <= seconds <= LONGEST_PAUSE_S:
        raise argparse.ArgumentTypeError(
            f"“{text}” is no number of seconds from {SHORTEST_PAUSE_S:g} to {LONGEST_PAUSE_S:g}"
        )
    return seconds


def list_fields(command: str, words: Sequence[str]) -> int:
    """``list-fields`` of every area that has a list."""
    parser = Parser(command, "Tell what the list can show, and filter by.")
    parser.add_argument("names", nargs="*", metavar="FIELD", help="only these")
    add_table_options(parser)
    options = parser.parse_args(words)
    with connect() as client:
        told = client.call("QueryFields", _LISTINGS[command.split()[0]].what, options.names or None)
    definitions = read_definitions(told)
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


def _condition(options: argparse.Namespace, listing: Listing, *, further: bool = False) -> Any:
    """Return the filter that the words stand for.

    The coordinator sees to it that all names exist where a filter has only names. Where there are
    globs or ``further`` conditions besides, it would leave them out; so they are looked up before.
    """
    if not options.names and not options.filter:
        return None
    from coordinator.queries.text import is_filter, is_glob, name_filter

    words, force, numeric = options.names, options.filter, listing.what == "job"
    condition = name_filter(words, listing.key, force=force, numeric=numeric)
    names = [word for word in words if numeric or not is_glob(word)]
    if not names or is_filter(words, force=force) or (len(names) == len(words) and not further):
        return condition
    with connect() as client:
        whole = full_names(client, listing.what, names, key=listing.key)
    globs = [word for word in words if word not in names]
    return name_filter([*whole, *globs], listing.key, force=False, numeric=numeric)


def _show(listing: Listing, condition: Any, options: argparse.Namespace) -> int:
    answer = query(listing.what, _fields(listing, options.output), condition)
    if options.json:
        write(options.json, answer.as_objects(), indent=2)
        return _check_known(answer.fields)
    kinds = [_SHOWN_AS.get(field["name"], field["kind"]) for field in answer.fields]
    titles = None if options.no_headers else [field["title"] for field in answer.fields]
    right = [kind in RIGHT for kind in kinds]
    status = next((n for n, field in enumerate(answer.fields) if field["name"] == "status"), None)

    def dye(column: int, padded: str) -> str:
        if column != status:
            return padded
        return paint(padded, status_colour(padded.strip()), sys.stdout)

    cells = list(_cells(answer, kinds, options))
    _print(table(titles, cells, right=right, separator=options.separator, dye=dye))
    sys.stdout.flush()
    for sentence in explanations(answer.last):
        print(sentence, file=sys.stderr)
    return _check_known(answer.fields)


def _cells(
    answer: Answer, kinds: Sequence[str], options: argparse.Namespace
) -> Iterator[list[str]]:
    """Write each row; what a silent node told before is marked."""
    units = options.units or ("h" if options.separator is None else "m")
    names = [field["name"] for field in answer.fields]
    for row, last in zip(answer.rows, answer.last, strict=True):
        cells = []
        for (status, value), name, kind in zip(row, names, kinds, strict=True):
            old = old_value(status, name, last)
            if old is None:
                cells.append(cell(status, value, kind, units=units, verbose=options.verbose))
            else:
                cells.append(cell(0, old, kind, units=units) + MARK)
        yield cells


def _fields(listing: Listing, output: str | None) -> list[str]:
    usual = os.environ.get(listing.variable) or listing.usual if listing.variable else listing.usual
    if output is None:
        return usual.split(",")
    added = output.startswith("+")
    fields = output.removeprefix("+").split(",")
    if "" in fields:
        raise InvalidRequest(
            f"A field without a name is asked for in “{output}”: give names with commas between, "
            "as in name,tags; “list-fields” tells all."
        )
    return [*usual.split(","), *fields] if added else fields


def _check_known(definitions: Sequence[Definition]) -> int:
    unknown = [field["name"] for field in definitions if field["kind"] == "unknown"]
    if unknown:
        sys.stdout.flush()
        raise UnknownField(f"Unknown fields: {', '.join(unknown)}; see “list-fields”.")
    return 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
