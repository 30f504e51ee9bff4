"""Spans of time as people write them: ``30m``, ``4h``, ``1.5d``, or a plain number of seconds."""

import re

from common.errors import InvalidRequest

_DURATION = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([a-zA-Z]?)\s*")
_FACTOR = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_S = 100 * 365 * 86_400  # a century; longer is a typing mistake


def parse_duration(text: str) -> float:
    """Read a span of time in seconds; suffixes s, m, h, d, w.

    Raises:
        InvalidRequest: no span of time, of an unknown unit, nothing at all, or absurdly long.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match[2].lower() not in _FACTOR:
        raise InvalidRequest(
            f"“{text}” is no span of time: give a number with s, m, h, d or w, as in 30m or 4h.",
            duration=text,
        )
    seconds = float(match[1]) * _FACTOR[match[2].lower()]
    if not 0 < seconds <= _LONGEST_S:
        wrong = "no time at all" if seconds == 0 else "more than a century"
        raise InvalidRequest(f"“{text}” is {wrong}.", duration=text)
    return seconds


def spoken(seconds: float) -> str:
    """Return a span of time for people to read: ``12 s``, ``3 minutes``, ``21 days``."""
    if seconds < 120:
        return f"{max(0, round(seconds))} s"
    if seconds < 7200:
        return f"{round(seconds / 60)} minutes"
    return (
        f"{round(seconds / 3600)} hours" if seconds < 172_800 else f"{round(seconds / 86_400)} days"
    )
