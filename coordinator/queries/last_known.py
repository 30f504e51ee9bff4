"""What a silent node told before, in a field of its own.

An old value never stands in the place of a new one: programs would take it for what is.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from common.errors import GntError
from common.model.node import Node
from coordinator.queries.field import Field, Missing
from coordinator.queries.live import Live

R = TypeVar("R")

DOC = "What its node told before, if it does not tell the rest: why, the age in seconds, and values"


def last_known(
    node: Node, now: object, past: Live, make_row: Callable[[Live], R], fields: Iterable[Field[R]]
) -> Any:
    """Return what a node told before, if it was asked now and did not answer.

    Args:
        node: who knows about the object.
        now: its answer, or its error; None if it was not asked.
        past: what it told before, if anything.
        make_row: makes the object's row of what nodes told.
        fields: what the node could tell.

    Returns:
        A JSON object: the ``node``, ``why`` there is nothing new, the ``age`` of what is old in
        seconds (None: it told this master nothing yet), and the old ``values`` by field.
    """
    if node.offline:
        return Missing.OFFLINE
    if not isinstance(now, GntError):
        return Missing.UNAVAILABLE
    told: dict[str, Any] = {"node": node.name, "why": now.message, "age": None, "values": {}}
    age_s = past.ages_s.get(node.uuid)
    if age_s is None:
        return told
    row = make_row(past)
    values = {field.name: field.get(row) for field in fields}
    known = {name: value for name, value in values.items() if not isinstance(value, Missing)}
    return told | {"age": round(age_s, 1), "values": known}
