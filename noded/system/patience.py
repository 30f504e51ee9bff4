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


class bounded_by:  # noqa: N801  # it reads like ``suppress``
    """Have ``check_patience`` call ``check`` in all that is done here."""

    __slots__ = ("_before", "_check")

    def __init__(self, check: Check) -> None:
        self._check = check

    def __enter__(self) -> None:
        self._before = _check.set(self._check)

    def __exit__(self, *_: object) -> None:
        _check.reset(self._before)


def without_bounds() -> bounded_by:
    """Do something that outlives the order it was begun by."""
    return bounded_by(_always)


def check_patience() -> None:
    """Stop before the first change for an order that nobody waits for any more.

    Raises:
        Expired: its caller has given up.
    """
    _check.get()()
