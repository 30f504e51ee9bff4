"""How far a copy is, for people."""

from common.durations import spoken
from common.units import format_mib
from noded.copies.interface import Fetched

MIB = 1 << 20
SOON_S = 2.0  # until a rate can be told


def sentence(fetched: Fetched) -> str:
    """Say how much is copied, how fast, and how long it will take."""
    total, about = fetched.total or fetched.expected, "" if fetched.total else "about "
    if total <= fetched.done and not fetched.total:  # nobody knows, or the script was wrong
        return f"{_size(fetched.done)} copied" if fetched.done else "the copy begins"
    done = f"{_size(fetched.done)} of {about}{_size(total)} copied"
    if fetched.seconds < SOON_S or fetched.done <= fetched.done_before:
        return done
    rate = (fetched.done - fetched.done_before) / fetched.seconds
    left_s = (total - fetched.done) / rate
    return f"{done}, {rate / MIB:.0f} MiB/s, {spoken(left_s)} left"


def share(fetched: Fetched) -> float | None:
    total = fetched.total or fetched.expected
    return min(1.0, fetched.done / total) if total else None


def _size(number: int) -> str:
    return format_mib(number / MIB)
