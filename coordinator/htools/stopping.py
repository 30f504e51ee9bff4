"""Ending between two steps when asked to: the first signal asks, the second ends at once."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from common.errors import Cancelled

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether somebody asked to end.

    Attributes:
        advice: what to say when leaving at once: what goes on by itself.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.advice = ""

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.is_asked:
            raise Cancelled(f"Ended by a second {signal.Signals(number).name}.{self.advice}")
        self.is_asked = True
        sys.stderr.write("Stopping after the jobs under way; a second signal leaves them.\n")


@contextmanager
def stopping() -> Iterator[Stop]:
    """Catch SIGINT and SIGTERM for as long as this lasts."""
    stop = Stop()
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
