"""What lists show of nodes that do not answer: what they told before, marked as old."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from common.durations import spoken
from coordinator.cli.telling import MOST_NAMED

FIELD = "last_known"
MARK = "?"  # after an old value; alone, it says that there is none
_NO_DATA = 2  # the status of what a node did not tell


class LastKnown(NamedTuple):
    """What a node told before; ``age_s`` is None if that was nothing."""

    node: str
    why: str  # there is nothing new: a sentence
    age_s: float | None
    values: dict[str, Any]

    def as_object(self) -> dict[str, Any]:
        """Return it as the coordinator told it."""
        return {"node": self.node, "why": self.why, "age": self.age_s, "values": self.values}

    def explain(self) -> str:
        """Say in sentences what the marks mean."""
        if self.age_s is None:
            return f"{self.why} It told this master nothing before."
        return f"{self.why} What has a {MARK} it told {spoken(self.age_s)} ago."


def with_last_known(fields: Sequence[str], what: str) -> list[str]:
    """Return the fields to ask for, so that what a node does not tell can be shown as it was."""
    has_it = what in ("instance", "node") and FIELD not in fields
    return [*fields, FIELD] if has_it else list(fields)


def read_last_known(value: Any) -> LastKnown | None:
    """Read the value of the field; None where the node has answered, or is not asked."""
    match value:
        case {
            "node": str(node),
            "why": str(why),
            "age": float() | int() | None as age_s,
            "values": dict(values),
        }:
            return LastKnown(node, why, age_s, values)
        case _:
            return None


def old_value(status: int, field: str, last: LastKnown | None) -> Any:
    """Return what stands for a value that a node did not tell; None if nothing does."""
    return last.values.get(field) if last is not None and status == _NO_DATA else None


def explanations(known: Iterable[LastKnown | None]) -> Iterator[str]:
    """Yield what is to be said below a table, once a node."""
    by_node = {last.node: last for last in known if last is not None}
    yield from (last.explain() for last in list(by_node.values())[:MOST_NAMED])
    if len(by_node) > MOST_NAMED:
        yield f"{len(by_node) - MOST_NAMED} other nodes do not answer, either."
