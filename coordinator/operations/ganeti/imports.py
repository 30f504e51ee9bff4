"""Ganeti makes an instance from an export by creating it; here that is an operation of its own."""

from collections.abc import Mapping
from typing import Any

from coordinator.operations.ganeti.parameters import known_parameters

CREATE, IMPORT = "OP_INSTANCE_CREATE", "OP_BACKUP_IMPORT"
# What tells an import from a creation, and what it does in any case.
_SAID = ("mode", "identify_defaults")


def is_import(opcode: str, given: Mapping[str, Any]) -> bool:
    return opcode == CREATE and given.get("mode") == "import"


def import_parameters(given: Mapping[str, Any], ours: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of an import from those of Ganeti's creation.

    As with all that is created, it is started unless that is said not to be.

    Args:
        given: by a client.
        ours: the names of the parameters of an import.

    Raises:
        InvalidRequest: one asks for what an import does not do.
    """
    known = {"start": True} | known_parameters(CREATE, given, (*ours, *_SAID))
    return {name: value for name, value in known.items() if name not in _SAID}
