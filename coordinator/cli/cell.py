"""One value of a query as text, by the kind of its field."""

import time
from typing import Any

from common.durations import spoken
from common.units import format_mib

RIGHT = frozenset({"number", "float", "unit"})  # kinds whose columns are aligned to the right
_MISSING_SHORT = {1: "??", 2: "?", 3: "-", 4: "*"}
_MISSING_LONG = {1: "(unknown)", 2: "(nodata)", 3: "(unavail)", 4: "(offline)"}
_CONTROL = dict.fromkeys((*range(32), 127), " ")  # would spoil the table, or the terminal


def cell(status: int, value: Any, kind: str, *, units: str = "h", verbose: bool = False) -> str:
    """Write one value.

    Args:
        status: 0 when there is a value, else why there is none (queries.field.Missing).
        value: a JSON value.
        kind: of the field, as "unit"; or "moment", "age" or "waiters", which go by its name.
        units: how sizes are written, see ``format_mib``.
        verbose: say in a word why there is no value, rather than in a sign.
    """
    if status != 0:
        return (_MISSING_LONG if verbose else _MISSING_SHORT).get(status, "??")
    match kind, value:
        case _, None:
            return "-"
        case "unit", int() | float():
            return format_mib(value, units)
        case "timestamp", int() | float():
            return format_time(value)
        case "moment", _:
            return format_moment(value)
        case "age", {"age": age_s}:
            return "never" if age_s is None else spoken(age_s)
        case "waiters", list():
            return " ".join(f"{mode}:{plain(owners)}" for mode, owners in value)
        case _:
            return plain(value)


def plain(value: Any) -> str:
    """Write any JSON value in a line: yes-no as Y and N, lists with commas."""
    match value:
        case None:
            return "-"
        case bool():
            return "Y" if value else "N"
        case list():
            return ",".join(plain(item) for item in value)
        case dict():
            return ",".join(f"{plain(key)}={plain(item)}" for key, item in value.items())
        case _:
            return str(value).translate(_CONTROL)


def format_time(seconds: float, microseconds: int | None = None) -> str:
    """Write a time in the local zone: ``2026-01-31 23:59:59``, with microseconds if given."""
    try:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):  # not of this world
        return str(seconds)
    return text if microseconds is None else f"{text}.{microseconds:06d}"


def format_moment(value: Any) -> str:
    """Write Ganeti's ``[seconds, microseconds]``, or a list of such."""
    match value:
        case [int(seconds), int(microseconds)]:
            return format_time(seconds, microseconds)
        case list():
            return ",".join(format_moment(item) for item in value)
        case _:
            return plain(value)
