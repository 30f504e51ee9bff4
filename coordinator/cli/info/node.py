"""``gnt-node info``: all about nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.cli.info.shown import identity, known, marked, show_some, silence

_FIELDS = (
    "name", "uuid", "serial_no", "ctime", "mtime", "pip", "sip", "group", "role",
    "master_candidate", "drained", "offline", "master_capable", "vm_capable", "pinst_list",
    "sinst_list", "ndparams", "custom_ndparams", "mtotal", "mnode", "mfree", "dtotal", "dfree",
    "ctotal", "csockets", "cnodes", "bootid", "tags",
)  # fmt: skip


def node_info(command: str, words: Sequence[str]) -> int:
    """``gnt-node info``."""
    return show_some(command, words, "node", "nodes", _FIELDS, describe_node)


def describe_node(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one node; absent values stand as text."""
    return {
        "Node name": told["name"],
        **silence(told),
        **identity(told),
        "primary ip": told["pip"],
        "secondary ip": told["sip"],
        "group": told["group"],
        "role": told["role"],
        "master candidate": told["master_candidate"],
        "drained": told["drained"],
        "offline": told["offline"],
        "master_capable": told["master_capable"],
        "vm_capable": told["vm_capable"],
        "primary for instances": told["pinst_list"],
        "secondary for instances": told["sinst_list"],
        "node parameters": marked(told["ndparams"], told["custom_ndparams"]),
        "memory": _amounts(told, total="mtotal", node="mnode", free="mfree"),
        "disk": _amounts(told, total="dtotal", free="dfree"),
        "processors": {
            "logical": known(told, "ctotal") or "unknown",
            "sockets": known(told, "csockets") or "unknown",
            "NUMA nodes": known(told, "cnodes") or "unknown",
        },
        "boot id": known(told, "bootid") or "unknown",
        "Tags": told["tags"],
    }


def _amounts(told: Mapping[str, Any], **fields: str) -> dict[str, str]:
    return {name: known(told, field, "unit") or "unknown" for name, field in fields.items()}
