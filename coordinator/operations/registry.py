"""Loading operations: a command loads the only one it needs, the coordinator all of them."""

from functools import cache
from importlib import import_module
from typing import Any

from coordinator.operations.base import REGISTRY, Operation
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.ganeti.parameters import unknown_operation


def find_operation(opcode: str) -> type[Operation[Any, Any]]:
    """Return an operation's class, loading its module only.

    Raises:
        InvalidRequest: there is no such operation.
    """
    if opcode not in CATALOGUE:
        raise unknown_operation(opcode)
    entry = CATALOGUE[opcode]
    for module in (entry.module, *entry.variants):
        import_module(f"coordinator.operations.{module}")
    return REGISTRY[opcode]


@cache
def load_all() -> None:
    """Load every operation; once is enough."""
    for opcode in CATALOGUE:
        find_operation(opcode)
