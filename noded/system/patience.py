"""Whoever gave an order may have given up while it waited for its turn.

What checks that goes along with the order, through all that is called for it, but not into the
tasks that it begins: those have an owner who watches and cancels them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]


def _always() -> None:
    """Find nothing wrong: this work is nobody's order, or its caller waits for ever."""


_check: ContextVar[Check] = ContextVar("check", default=_always)


@contextmanager
def bounded_by(check: Check) -> Iterator[None]:
    """Have ``check_patience`` call ``check`` in all that is done here."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


@contextmanager
def without_bounds() -> Iterator[None]:
    """Do something that outlives the order it was begun by."""
    with bounded_by(_always):
        yield


def check_patience() -> None:
    """Stop before the first change for an order that nobody waits for any more.

    Raises:
        Expired: its caller has given up.
    """
    _check.get()()
