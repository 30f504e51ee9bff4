"""``gnt-group info``: all about groups of nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.cli.info.shown import identity, marked, show_some

_FIELDS = (
    "name", "uuid", "serial_no", "ctime", "mtime", "alloc_policy", "node_list", "pinst_list",
    "ndparams", "custom_ndparams", "diskparams", "custom_diskparams", "ipolicy", "custom_ipolicy",
    "tags",
)  # fmt: skip


def group_info(command: str, words: Sequence[str]) -> int:
    """``gnt-group info``."""
    return show_some(command, words, "group", "groups of nodes", _FIELDS, describe_group)


def describe_group(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one group."""
    return {
        "Group name": told["name"],
        **identity(told),
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
