"""Our errors as Ganeti's clients know them, and back.

On the wire a failure is ``[class name, arguments]`` with Ganeti's names. That is coarser
than our tree of errors, so an answer carries ours beside it, under a key that Ganeti's
clients do not look at; see ``common.luxi.answers``.

Source: Ganeti's errors.py.
"""

from typing import Any

from common.errors import (
    Bug,
    Cancelled,
    Conflict,
    GntError,
    InvalidRequest,
    NoCapacity,
    NodeFailure,
    NotFound,
)


class JobLost(NotFound):
    """There is no such job."""

    code = "not-found.job"


class QueueDrained(Conflict):
    """The operator has closed the queue for new jobs."""

    code = "conflict.queue-drained"


class QueueFull(NoCapacity):
    """There are as many jobs as the queue holds; archive some."""

    code = "no-capacity.queue"


_PREREQUISITES: tuple[tuple[type[GntError], str], ...] = (
    (InvalidRequest, "wrong_input"),
    (NotFound, "unknown_entity"),
    (Conflict, "wrong_state"),
    (NoCapacity, "insufficient_resources"),
)
_CLASSES: tuple[tuple[type[GntError], str], ...] = (  # the first that fits counts
    (JobLost, "JobLost"),
    (QueueDrained, "JobQueueDrainError"),
    (QueueFull, "JobQueueFull"),
    (Cancelled, "JobCanceled"),
    (Bug, "ProgrammerError"),
)
_BY_ECODE: dict[str, type[GntError]] = {
    **{ecode: kind for kind, ecode in _PREREQUISITES},
    "already_exists": Conflict,
    "resource_not_unique": Conflict,
    "temp_insufficient_resources": NoCapacity,
    "environment_error": NodeFailure,
    "internal_error": Bug,
}
_BY_CLASS: dict[str, type[GntError]] = {
    **{name: kind for kind, name in _CLASSES},
    "OpExecError": NodeFailure,
    "OpPrereqError": InvalidRequest,
}


_RESERVED = frozenset({"self", "message"})  # no names of details


def to_ganeti(error: GntError) -> list[Any]:
    """Return ``[class name, arguments]`` as Ganeti's client raises it."""
    for kind, name in _CLASSES:
        if isinstance(error, kind):
            return [name, [error.message]]
    for kind, ecode in _PREREQUISITES:
        if isinstance(error, kind):
            return ["OpPrereqError", [error.message, ecode]]
    return ["OpExecError", [error.message]]


def from_ganeti(told: Any) -> GntError:
    """Make the nearest of our errors from what stands for one on the wire: a pair, or text."""
    match told:
        case [str(name), [str(message), str(ecode)]] if ecode in _BY_ECODE:
            return _BY_ECODE[ecode](message, ganeti=name)
        case [str(name), [str(message), *_]]:
            return _BY_CLASS.get(name, GntError)(message, ganeti=name)
        case str(message):
            return GntError(message)
        case _:
            return GntError(f"The request failed, and the answer does not say why: {told!r}.")


def to_wire(error: GntError) -> dict[str, Any]:
    """Return all of our error, as JSON values."""
    return {"code": error.code, "message": error.message, "detail": error.detail}


def from_wire(told: Any) -> GntError | None:
    """Rebuild our error from ``to_wire``; None when it is not of that form."""
    match told:
        case {"code": str(code), "message": str(message), "detail": dict(detail)}:
            kept = {key: value for key, value in detail.items() if key not in _RESERVED}
            return GntError.from_code(code, message, kept)
        case _:
            return None
