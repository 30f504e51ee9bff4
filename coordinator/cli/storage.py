"""The lists of what nodes keep disks in: ``gnt-node list-storage``, ``volumes``."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.cell import RIGHT, cell
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.submit import common_fields
from coordinator.cli.table import table
from coordinator.cli.telling import write

_UNITS = {
    "node": "Node", "type": "Type", "name": "Name", "size": "Size", "used": "Used",
    "free": "Free", "allocatable": "Allocatable",
}  # fmt: skip
_VOLUMES = {
    "node": "Node", "phys": "PhysDev", "vg": "VG", "name": "Name", "size": "Size",
    "instance": "Instance",
}  # fmt: skip
_SIZES = ("size", "used", "free")


def list_storage(command: str, words: Sequence[str]) -> int:
    """``gnt-node list-storage``."""
    parser = _parser(command, "List what nodes keep disks in, and what that is made of.", _UNITS)
    parser.add_argument(
        "-t", "--storage-type", metavar="file|sharedfile|gluster|lvm-pv|lvm-vg",
        help="what to list (where new disks are kept)",
    )  # fmt: skip
    options = parser.parse_args(words)
    wire = {"OP_ID": "OP_NODE_QUERY_STORAGE"}
    if options.storage_type:
        wire["storage_type"] = options.storage_type
    return _show(options, wire, _UNITS)


def list_volumes(command: str, words: Sequence[str]) -> int:
    """``gnt-node volumes``."""
    parser = _parser(command, "List the volumes in the cluster's volume groups.", _VOLUMES)
    return _show(parser.parse_args(words), {"OP_ID": "OP_NODE_QUERYVOLS"}, _VOLUMES)


def _parser(command: str, about: str, titles: Mapping[str, str]) -> Parser:
    parser = Parser(command, about)
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="its name; none: all nodes")
    parser.add_argument(
        "-o", "--output", metavar="FIELDS", help=f"with commas; + adds to {','.join(titles)}"
    )
    parser.add_argument("--no-headers", action="store_true", help="without titles")
    parser.add_argument("--separator", metavar="TEXT", help="between columns")
    parser.add_argument("--units", metavar="h|m|g|t", default="h", help="of sizes (h)")
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    parser.set_defaults(dry_run=False, reason=None)
    add_json(parser)
    return parser


def _show(options: argparse.Namespace, order: dict[str, Any], titles: Mapping[str, str]) -> int:
    """Have a job look, and print what it found."""
    fields = _fields(options.output, titles)
    wire = order | {"output_fields": fields, "nodes": options.nodes}
    rows = run(wire | common_fields("gnt-node", options))
    if options.json:
        write(options.json, [dict(zip(fields, row, strict=True)) for row in rows])
        return 0
    kinds = ["unit" if field in _SIZES else "other" for field in fields]
    cells = [
        [cell(0, value, kind, units=options.units) for value, kind in zip(row, kinds, strict=True)]
        for row in rows
    ]
    shown = None if options.no_headers else [titles[field] for field in fields]
    right = [kind in RIGHT for kind in kinds]
    for line in table(shown, cells, right=right, separator=options.separator):
        print(line)
    return 0


def run(wire: dict[str, Any]) -> list[list[Any]]:
    """Run a job that only looks; return the rows that it found."""
    with connect() as client:
        ended = follow(client, int(client.call("SubmitJob", [wire])), out=sys.stderr)
    if ended.failure is not None:
        raise ended.failure
    rows: list[list[Any]] = ended.results[0]
    return rows


def _fields(words: str | None, titles: Mapping[str, str]) -> list[str]:
    given = (words or "").removeprefix("+").split(",") if words else []
    fields = given if words and not words.startswith("+") else [*titles, *given]
    if unknown := [field for field in fields if field not in titles]:
        raise InvalidRequest(f"There is no field “{unknown[0]}”; there are {', '.join(titles)}.")
    return fields
