"""On which processors of a node those of a guest run: ``all``, or lists as ``0-3,^2:5:6``.

One list is for all of them; else there is a list for each, with colons between. Ganeti's syntax.
"""

import re

ALL = "all"
MOST_PROCESSORS = 4096
_PART = re.compile(r"(?P<not>\^?)(?P<first>[0-9]{1,4})(-(?P<last>[0-9]{1,4}))?")


def parse_cpu_mask(text: str) -> tuple[frozenset[int], ...]:
    """Read a mask; empty if each may run anywhere, and one set for all of them if there is one.

    Raises:
        ValueError: it is none.
    """
    if text == ALL:
        return ()
    return tuple(map(_parse_list, text.split(":")))


def _parse_list(text: str) -> frozenset[int]:
    if text == ALL:
        return frozenset()
    chosen: set[int] = set()
    left_out: set[int] = set()
    for word in text.split(","):
        part = _PART.fullmatch(word.strip())
        if part is None:
            raise ValueError(f"cpu_mask cannot have “{word}”: give all, or numbers as in 0-3,^2")
        first = int(part["first"])
        last = int(part["last"] or first)
        if not first <= last < MOST_PROCESSORS:
            raise ValueError(f"cpu_mask cannot have “{word}”: there are 0 to {MOST_PROCESSORS - 1}")
        (left_out if part["not"] else chosen).update(range(first, last + 1))
    if not chosen - left_out:
        raise ValueError(f"cpu_mask “{text}” leaves no processor")
    return frozenset(chosen - left_out)
