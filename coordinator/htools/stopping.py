"""Ending between two steps when asked to: the first signal asks, the second ends at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from common.errors import Cancelled
from coordinator.htools.output import tell

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
        tell("Stopping after the jobs under way; a second signal leaves them.")


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
