"""What a script writes is passed on in whole chunks; meanwhile who waits hears of it."""

import os
from itertools import islice

from noded.copies.chunks import CHUNK
from noded.copies.serving import SILENT_S
from noded.copies.streams import chunks_of


class SlowScript:
    """Writes a byte whenever somebody looks at the clock, which is long before a chunk is full."""

    def __init__(self) -> None:
        self.pipe, self._end = os.pipe()
        self.at = 0

    def now(self) -> float:
        os.write(self._end, b"x")
        self.at += 1
        return self.at * SILENT_S / 4

    def end(self) -> None:
        os.close(self._end)
        os.close(self.pipe)


def test_a_script_that_writes_slowly_and_steadily_is_heard_of_all_the_time() -> None:
    script = SlowScript()
    passed = chunks_of(script.pipe, now=script.now)
    for _ in range(5):
        before = script.at
        assert list(islice(passed, 1)) == [b""]
        assert 4 <= script.at - before <= 7  # it has written all the while
    assert script.at < CHUNK
    script.end()
