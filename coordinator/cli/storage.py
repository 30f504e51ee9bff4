"""Lists of what nodes keep disks in: ``gnt-node list-storage``, ``volumes``, ``list-drbd``."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.asking import query
from coordinator.cli.cell import RIGHT, cell
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.job_options import common_fields
from coordinator.cli.parser import Parser, add_json
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
_MIRRORS = {
    "node": "Node", "minor": "Minor", "instance": "Instance", "disk": "Disk", "role": "Role",
    "peer": "PeerNode",
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


def list_mirrors(command: str, words: Sequence[str]) -> int:
    """``gnt-node list-drbd``."""
    parser = Parser(command, "List the mirrored disks that a node has, with DRBD's numbers.")
    parser.add_argument("node", metavar="NODE", help="its name")
    parser.add_argument("--no-headers", action="store_true", help="without titles")
    parser.add_argument("--separator", metavar="TEXT", help="between columns")
    add_json(parser)
    options = parser.parse_args(words)
    (node,) = query("node", ("name",), ["|", ["==", "name", options.node]]).as_objects()
    told = run({"OP_ID": "OP_INSTANCE_QUERY_DATA", "static": True})
    rows = sorted(_mirrors_on(node["name"], told))
    if options.json:
        write(options.json, [dict(zip(_MIRRORS, row, strict=True)) for row in rows])
        return 0
    shown = None if options.no_headers else list(_MIRRORS.values())
    right = [field == "minor" for field in _MIRRORS]
    cells = [list(map(str, row)) for row in rows]
    for line in table(shown, cells, right=right, separator=options.separator):
        print(line)
    return 0


def _mirrors_on(node: str, told: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
    """Yield a row for each mirrored disk of a node; ``told`` is all about all instances."""
    sides = ("primary", "secondary")
    for name, instance in told.items():
        for disk in instance["disks"]:
            for role, other in zip(sides, reversed(sides), strict=True):
                pair = disk["drbd_info"]
                if pair and pair[f"{role}_node"] == node:
                    minor, peer = pair[f"{role}_minor"], pair[f"{other}_node"]
                    yield node, minor, name, disk["iv_name"], role, peer


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


def run(wire: dict[str, Any]) -> Any:
    """Run a job that only looks; return what it found."""
    with connect() as client:
        ended = follow(client, int(client.call("SubmitJob", [wire])), out=sys.stderr)
    if ended.failure is not None:
        raise ended.failure
    return ended.results[0]


def _fields(words: str | None, titles: Mapping[str, str]) -> list[str]:
    given = (words or "").removeprefix("+").split(",") if words else []
    fields = given if words and not words.startswith("+") else [*titles, *given]
    if unknown := [field for field in fields if field not in titles]:
        raise InvalidRequest(f"There is no field “{unknown[0]}”; there are {', '.join(titles)}.")
    return fields
