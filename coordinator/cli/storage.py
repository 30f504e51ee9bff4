"""The lists of what nodes keep disks in: ``gnt-node list-storage``."""

import sys
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.cell import RIGHT, cell
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.submit import common_fields
from coordinator.cli.table import table
from coordinator.cli.telling import write

_TITLES = {
    "node": "Node", "type": "Type", "name": "Name", "size": "Size", "used": "Used",
    "free": "Free", "allocatable": "Allocatable",
}  # fmt: skip
_SIZES = ("size", "used", "free")


def list_storage(command: str, words: Sequence[str]) -> int:
    """``gnt-node list-storage``."""
    parser = Parser(command, "List what nodes keep disks in, and what that is made of.")
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="its name; none: all nodes")
    parser.add_argument(
        "-t", "--storage-type", metavar="file|sharedfile|gluster|lvm-pv|lvm-vg",
        help="what to list (where new disks are kept)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FIELDS", help=f"with commas; + adds to {','.join(_TITLES)}"
    )
    parser.add_argument("--no-headers", action="store_true", help="without titles")
    parser.add_argument("--separator", metavar="TEXT", help="between columns")
    parser.add_argument("--units", metavar="h|m|g|t", default="h", help="of sizes (h)")
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    parser.set_defaults(dry_run=False, reason=None)
    add_json(parser)
    options = parser.parse_args(words)
    fields = _fields(options.output)
    wire: dict[str, Any] = {
        "OP_ID": "OP_NODE_QUERY_STORAGE", "output_fields": fields, "nodes": options.nodes,
    }  # fmt: skip
    if options.storage_type:
        wire["storage_type"] = options.storage_type
    rows = run(wire | common_fields("gnt-node", options))
    if options.json:
        write(options.json, [dict(zip(fields, row, strict=True)) for row in rows])
        return 0
    kinds = ["unit" if field in _SIZES else "other" for field in fields]
    cells = [
        [cell(0, value, kind, units=options.units) for value, kind in zip(row, kinds, strict=True)]
        for row in rows
    ]
    titles = None if options.no_headers else [_TITLES[field] for field in fields]
    right = [kind in RIGHT for kind in kinds]
    for line in table(titles, cells, right=right, separator=options.separator):
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


def _fields(words: str | None) -> list[str]:
    given = (words or "").removeprefix("+").split(",") if words else []
    fields = given if words and not words.startswith("+") else [*_TITLES, *given]
    if unknown := [field for field in fields if field not in _TITLES]:
        raise InvalidRequest(f"There is no field “{unknown[0]}”; there are {', '.join(_TITLES)}.")
    return fields
