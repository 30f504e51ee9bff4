"""Changes of disks and nics in the two parts that Ganeti's older clients, and its burn-in, send."""

from typing import Any

LAST = -1


def in_three_parts(changes: Any) -> Any:
    """Return changes with what they are of: ``["add", {…}]`` is of the last, ``[0, {…}]`` of 0.

    What has another form stays as it is, for who reads it to refuse.
    """
    if not isinstance(changes, list | tuple):
        return changes
    return [_in_three_parts(change) for change in changes]


def _in_three_parts(change: Any) -> Any:
    match change:
        case ["add" | "remove" | "attach" | "detach" as action, dict() as values]:
            return [action, LAST, values]
        case [int() as which, dict() as values]:
            return ["modify", which, values]
        case _:
            return change
