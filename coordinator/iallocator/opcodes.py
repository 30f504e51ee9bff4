"""Moves as Ganeti's opcodes, with its order of fields."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Opcode = dict[str, "Any"]


def migrate(instance: str, target: str | None = None, *, is_live: bool) -> Opcode:
    """Let an instance change sides, or move to ``target`` on shared storage; else it fails over."""
    where = {} if target is None else {"target_node": target}
    if not is_live:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": instance,
            "shutdown_timeout": 120,
            "ignore_consistency": False,
            **where,
            "ignore_ipolicy": False,
            "cleanup": False,
        }
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": instance,
        **where,
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }


def replace_secondary(instance: str, target: str) -> Opcode:
    """Copy the mirror of an instance to another node."""
    return {
        "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
        "instance_name": instance,
        "early_release": False,
        "ignore_ipolicy": False,
        "mode": "replace_new_secondary",
        "disks": [],
        "remote_node": target,
    }
