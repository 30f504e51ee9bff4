"""Sizes as people write them: ``64M``, ``1.5g``, ``10GiB``, or a plain number of MiB."""

from __future__ import annotations

import math
import re

from common.errors import InvalidRequest

TYPE_CHECKING = False  # lists show sizes, and are done before the types of messages are imported
if TYPE_CHECKING:
    from common.names import MiB

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")
_FACTOR = {"": 1, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}
_LARGEST_MIB = 1024**4  # an exbibyte; larger is a typing mistake


def parse_mib(text: str) -> MiB:
    """Read a size in MiB, rounding fractions up; suffixes M, G, T, P, each with B or iB.

    Raises:
        InvalidRequest: not a size, of unknown unit, or absurdly large.
    """
    match = _SIZE.fullmatch(text)
    unit = match[2].lower().removesuffix("ib").removesuffix("b") if match else None
    if match is None or unit not in _FACTOR or (match[2] and not unit):
        raise InvalidRequest(
            f"“{text}” is no size: give MiB as a plain number, or a number with M, G or T, "
            "as in 10G.",
            size=text,
        )
    whole, _, fraction = match[1].partition(".")
    scale = 10 ** len(fraction)
    size = -(-int(whole + fraction) * _FACTOR[unit] // scale)
    if size > _LARGEST_MIB:
        raise InvalidRequest(f"“{text}” is larger than any disk or memory.", size=text)
    from common.names import MiB

    return MiB(size)


def format_mib(size: float, unit: str = "h") -> str:
    """Write a size for people.

    Args:
        size: in MiB.
        unit: ``h`` picks the largest fitting unit and names it; ``m``, ``g``, ``t`` give
            the bare number in that unit (Ganeti's ``--units``).
    """
    if not math.isfinite(size):  # what no node can mean, and no list may stumble over
        return str(size)
    if unit == "m":
        return str(round(size))
    if unit != "h":
        return f"{size / _FACTOR[unit]:.1f}"
    if size < 1024:
        return f"{round(size)}M"
    if size < 1024**2:
        return f"{size / 1024:.1f}G"
    return f"{size / 1024**2:.1f}T"
