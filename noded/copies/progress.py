"""How far a copy is, for people."""

from common.durations import spoken
from common.units import format_mib
from noded.copies.interface import Fetched

MIB = 1 << 20
SOON_S = 2.0  # until a rate can be told


def sentence(fetched: Fetched) -> str:
    """Say how much is copied, how fast, and how long it will take."""
    if not fetched.total:  # of what a script writes it is known at the end
        return f"{_size(fetched.done)} copied" if fetched.done else "the copy begins"
    done = f"{_size(fetched.done)} of {_size(fetched.total)} copied"
    if fetched.seconds < SOON_S or fetched.done <= fetched.done_before:
        return done
    rate = (fetched.done - fetched.done_before) / fetched.seconds
    left_s = (fetched.total - fetched.done) / rate
    return f"{done}, {rate / MIB:.0f} MiB/s, {spoken(left_s)} left"


def share(fetched: Fetched) -> float | None:
    return min(1.0, fetched.done / fetched.total) if fetched.total else None


def _size(number: int) -> str:
    return format_mib(number / MIB)
