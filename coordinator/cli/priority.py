"""Priorities of jobs as operators give them."""

from common.errors import InvalidRequest

PRIORITIES = {"low": 10, "normal": 0, "high": -10}


def read_priority(text: str) -> int:
    """Read a word or a number; -20 is the most urgent, 19 the least.

    Raises:
        InvalidRequest: it is neither.
    """
    if text in PRIORITIES:
        return PRIORITIES[text]
    try:
        number = int(text)
    except ValueError:
        number = 99
    if not -20 <= number <= 19:
        raise InvalidRequest(f"--priority: “{text}” is none of low, normal, high, -20 … 19.")
    return number
