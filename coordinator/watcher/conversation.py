"""What a round of the watcher is made of: requests that it yields, and what it tells at the end."""

import enum
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple

SOURCE = "gantry:watcher"  # in the reason of its jobs
LARGEST_ORDER = 200  # jobs a round, for others to have a turn
PRIORITY = 10  # low: what an operator orders goes first
ENDED = ("success", "error", "canceled")


class Request(NamedTuple):
    """A LUXI call."""

    method: str
    args: tuple[Any, ...]


class Weight(enum.Enum):
    """How much a sentence matters to who reads the journal."""

    WARNING = "warning"  # something was not as it should be, and something was done or failed
    INFO = "info"  # nothing was done


class Told(NamedTuple):
    weight: Weight
    text: str


Round = Generator[Request, Any, list[Told]]


def order(opcode: str, field: str, name: str, why: str, now: float) -> dict[str, Any]:
    reason = [[SOURCE, why, int(now * 1_000_000_000)]]
    return {"OP_ID": opcode, field: name, "priority": PRIORITY, "reason": reason}


def unfinished_or_since(moment: float) -> list[Any]:
    """Return the filter for jobs that have not ended, and those that were submitted lately."""
    unfinished = ["&", *(["!=", "status", status] for status in ENDED)]
    return ["|", unfinished, [">=", "received_ts", moment]]


def asked(
    kind: str, fields: Sequence[str], which: Sequence[Any] | None
) -> Generator[Request, Any, list[list[Any]]]:
    """Ask for a list; return the plain values of its rows."""
    answer = yield Request("Query", (kind, fields, which))
    return [[value for _, value in row] for row in answer["data"]]


def ordered(
    orders: Iterable[dict[str, Any]],
) -> Generator[Request, Any, list[tuple[bool, Any]]]:
    """Give orders, a job each; return whether each was taken, and its number or why it was not."""
    answers: list[tuple[bool, Any]] = yield Request(
        "SubmitManyJobs", ([[each] for each in orders],)
    )
    return answers
