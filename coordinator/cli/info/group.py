"""``gnt-group info``: all about groups of nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.cli.asking import query
from coordinator.cli.cell import format_time
from coordinator.cli.info.shown import marked, named, show
from coordinator.cli.parser import Parser, add_json

_FIELDS = (
    "name", "uuid", "serial_no", "ctime", "mtime", "alloc_policy", "node_list", "pinst_list",
    "ndparams", "custom_ndparams", "diskparams", "custom_diskparams", "ipolicy", "custom_ipolicy",
    "tags",
)  # fmt: skip


def group_info(command: str, words: Sequence[str]) -> int:
    """``gnt-group info``."""
    parser = Parser(command, "Show all about groups of nodes, or about those named.")
    parser.add_argument("names", nargs="*", metavar="GROUP", help="its name; none: all groups")
    add_json(parser)
    options = parser.parse_args(words)
    return show(query("group", _FIELDS, named(options.names)), describe_group, form=options.json)


def describe_group(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one group."""
    return {
        "Group name": told["name"],
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
        "allocation policy": told["alloc_policy"],
        "nodes": told["node_list"],
        "primary instances": told["pinst_list"],
        "Node parameters": marked(told["ndparams"], told["custom_ndparams"]),
        "Disk parameters": {
            template: marked(merged, told["custom_diskparams"].get(template, {}))
            for template, merged in told["diskparams"].items()
            if merged
        },
        "Instance policy": told["ipolicy"],
        "Set for this group": sorted(told["custom_ipolicy"]),
        "Tags": told["tags"],
    }
