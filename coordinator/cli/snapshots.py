"""The list of what was kept of instances' disks: ``gnt-instance list-snapshots``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from coordinator.cli.asking import ask
from coordinator.cli.cell import cell
from coordinator.cli.connection import connect
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser, add_table_options
from coordinator.cli.table import table
from coordinator.cli.telling import write

_TITLES = ("Instance", "Snapshot", "Taken", "Disks", "Size", "Room", "Node")


class _Snapshot(NamedTuple):
    """One of all disks that an instance had; sizes are sums, in MiB.

    ``node`` has it; None if all reach it.
    """

    instance: str
    name: str
    taken_at: float
    disks: int
    size: int
    room: int
    node: str | None


def list_snapshots(command: str, words: Sequence[str]) -> int:
    """Print them, those of an instance from the oldest on."""
    parser = Parser(command, "List what was kept of instances' disks.")
    parser.add_argument("names", nargs="*", metavar="INSTANCE", help="its name; none: all")
    parser.add_argument("--units", choices=("h", "m", "g", "t"), default="h", help="of sizes (h)")
    add_table_options(parser)
    options = parser.parse_args(words)
    with connect() as client:
        names = full_names(client, "instance", options.names) if options.names else []
        chosen = ["|", *(["==", "name", name] for name in names)] if names else None
        answer = ask(client, "instance", ["name", "disk.snapshots"], chosen)
    rows = [each for row in answer.rows for each in _snapshots(row[0][1], row[1][1] or [])]
    if options.json:
        write(options.json, [each._asdict() for each in rows])
        return 0
    kinds = ("text", "text", "timestamp", "number", "unit", "unit", "text")
    cells = [
        [
            cell(0, "-" if value is None else value, kind, units=options.units)
            for value, kind in zip(row, kinds, strict=True)
        ]
        for row in rows
    ]
    right = [kind in ("number", "unit") for kind in kinds]
    titles = None if options.no_headers else _TITLES
    for line in table(titles, cells, right=right, separator=options.separator):
        print(line)
    return 0


def _snapshots(instance: str, disks: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[_Snapshot]:
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for each in (each for disk in disks for each in disk):
        by_name.setdefault(each["name"], []).append(each)
    for name, every in by_name.items():
        size, room = (sum(each[key] for each in every) for key in ("size", "room"))
        first = every[0]
        yield _Snapshot(
            instance, name, first["taken_at"], len(every), size, room, first.get("node")
        )
