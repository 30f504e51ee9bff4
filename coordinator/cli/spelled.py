"""What is wrong with an operation, in the words of the command line that it was read from."""

import re
from functools import partial
from typing import Any

from common.messages import Order
from coordinator.cli.derive import shown
from coordinator.operations.base import Operation, read_operation
from coordinator.operations.parameter import Syntax, parameters_of
from coordinator.operations.registry import find_operation

WHAT = "the words of the command"

_PATH = re.compile(r"(?P<field>\w+)(?:\[(?P<number>\d+)\])?(?P<rest>.*)", re.DOTALL)


def read_order(wire: dict[str, Any]) -> Operation[Any, Any]:
    """Build the operation that a command line has led to.

    Raises:
        InvalidRequest: something does not fit; names the option.
    """
    kind = find_operation(wire["OP_ID"])
    return read_operation(wire, what=WHAT, spelled=partial(option_of, kind))


def option_of(kind: type[Order], path: str) -> str:
    """Return what a command calls a path of its fields: ``--disk 0:size`` for ``disks[0].size``."""
    match = _PATH.fullmatch(path)
    parameter = parameters_of(kind).get(match["field"]) if match else None
    if match is None or parameter is None or parameter.is_hidden:
        return path
    label = parameter.flags[-1] if parameter.flags else shown(match["field"], parameter)
    if parameter.syntax is Syntax.DEVICES and match["number"]:
        label = f"{label} {match['number']}"
        return f"{label}:{match['rest'].removeprefix('.')}" if match["rest"] else label
    return label
