"""An event loop for simulated clusters that programs outside of the process talk to.

While something is under way time is virtual, as in ``tests.support.clock``: a minute in which a
guest shuts down takes none. Otherwise it passes as on any clock, for those outside to have a say.
"""

import selectors
import time
from collections.abc import Callable

from tests.support.clock import VirtualLoop, Waits


class HurriedLoop(VirtualLoop):
    """``is_busy`` tells whether anything is under way; nobody outside is waited for meanwhile."""

    def __init__(self) -> None:
        self.is_busy: Callable[[], bool] = lambda: True
        super().__init__()

    def _new_waits(self, limit_s: float) -> Waits:
        return _Waits(self, limit_s)


class _Waits(Waits):
    def __init__(self, loop: HurriedLoop, limit_s: float) -> None:
        super().__init__(loop, limit_s)
        self._hurried = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and self._hurried.is_busy():
            return super().select(timeout)
        began = time.monotonic()
        ready = selectors.DefaultSelector.select(self, timeout)  # which really waits
        self.now_s += time.monotonic() - began
        return ready
