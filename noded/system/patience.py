"""Whoever gave an order may have given up while it waited for its turn.

What checks that goes along with the order, through all that is called for it, but not into the
tasks that it begins: those have an owner who watches and cancels them.
"""

from collections.abc import Callable
from contextvars import ContextVar

Check = Callable[[], None]


def _always() -> None:
    """Find nothing wrong: this work is nobody's order, or its caller waits for ever."""


_check: ContextVar[Check] = ContextVar("check", default=_always)


class _Bounds:
    """What ``check_patience`` calls as long as its block lasts."""

    __slots__ = ("_before", "_check")

    def __init__(self, check: Check) -> None:
        self._check = check

    def __enter__(self) -> None:
        self._before = _check.set(self._check)

    def __exit__(self, *_: object) -> None:
        _check.reset(self._before)


def bounded_by(check: Check) -> _Bounds:
    """Have ``check_patience`` call ``check`` in all that is done here."""
    return _Bounds(check)


def without_bounds() -> _Bounds:
    """Do something that outlives the order it was begun by."""
    return _Bounds(_always)


def check_patience() -> None:
    """Stop before the first change for an order that nobody waits for any more.

    Raises:
        Expired: its caller has given up.
    """
    _check.get()()
