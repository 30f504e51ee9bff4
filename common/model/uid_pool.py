"""A pool of user ids for guests: ranges that are apart from each other, in order.

Written as ``70000-70099,70200``, and sent as ``[[70000, 70099], [70200, 70200]]``; both ends of a
range are in it. Names and forms are Ganeti's.
"""

import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from common.errors import InvalidRequest

LOWEST, HIGHEST = 1000, (1 << 32) - 3  # below are the system's; above mean “nobody”, “no change”

Uid = Annotated[int, Meta(ge=LOWEST, le=HIGHEST)]
UidPool = Annotated[tuple[tuple[Uid, Uid], ...], Meta(max_length=1024)]

_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


def parse_uid_pool(text: str) -> list[tuple[int, int]]:
    """Read ranges with commas between; whether they make sense is not looked at.

    Raises:
        InvalidRequest: one is no range.
    """
    return [_parse_range(word.strip()) for word in text.split(",") if word.strip()]


def format_uid_pool(pool: Iterable[tuple[int, int]], separator: str = ",") -> str:
    """Write ranges as they are read."""
    return separator.join(str(low) if low == high else f"{low}-{high}" for low, high in pool)


def with_uids(pool: UidPool, more: UidPool) -> UidPool:
    """Return a pool that has what either has; ranges that meet become one.

    Raises:
        ValueError: a range ends before it begins.
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted((*pool, *more)):
        if high < low:
            raise ValueError(f"a range of user ids ends before it begins: {low}-{high}")
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def without_uids(pool: UidPool, fewer: UidPool) -> UidPool:
    """Return a pool without some of its ids.

    Raises:
        ValueError: it does not have all of them, or a range ends before it begins.
    """
    left = list(with_uids(pool, ()))
    for low, high in with_uids(fewer, ()):
        around = next(((a, b) for a, b in left if a <= low and high <= b), None)
        if around is None:
            gone = format_uid_pool([(low, high)])
            raise ValueError(f"the pool does not have all of the user ids {gone}")
        left.remove(around)
        left += [
            part for part in ((around[0], low - 1), (high + 1, around[1])) if part[0] <= part[1]
        ]
    return with_uids(tuple(left), ())


def uids_within(pool: UidPool, allowed: range) -> tuple[range, ...]:
    """Return those ids of a pool that are in ``allowed`` as well."""
    both = (range(max(low, allowed.start), min(high + 1, allowed.stop)) for low, high in pool)
    return tuple(part for part in both if part)


def _parse_range(word: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(word)
    if match is None:
        raise InvalidRequest(f"“{word}” is no range of user ids, as in 70000-70099 or 70200.")
    low = int(match[1])
    return low, int(match[2]) if match[2] else low
