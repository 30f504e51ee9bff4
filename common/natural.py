"""The order that people expect of names: b2 before b10."""

import re
from functools import lru_cache

Key = tuple[tuple[tuple[int, int, str], ...], str]

_PARTS = re.compile(r"(\d+)")


@lru_cache(maxsize=1 << 16)  # lists are sorted again after every change
def natural_key(name: str) -> Key:
    """Return a key to sort by: numbers within a name count as numbers.

    Names that differ in leading zeros only keep one order: the name itself decides.
    """
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in _PARTS.split(name)
        if part
    )
    return parts, name
