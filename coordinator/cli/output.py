"""What commands print: nothing in it can make the terminal do anything.

Names, messages of jobs and errors hold what nodes, QEMU and other people said. They all come out
here, so nobody who prints has to think of it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

from common.printable import printable
from coordinator.cli.colour import SEQUENCE, has_colour


class PrintableStream:
    """A text stream that writes control characters as escapes.

    Our own few colours pass where there are any. Somebody else's text could have them, too,
    which moves nothing, hides nothing, and looks like what it is.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if has_colour(self._stream):
            plain_and_painted = SEQUENCE.split(text)
            plain_and_painted[::2] = map(printable, plain_and_painted[::2])
            self._stream.write("".join(plain_and_painted))
        else:
            self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printable_output() -> Iterator[None]:
    """Have all that is printed come out harmless."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not know every character
            stream.reconfigure(errors="replace")
    out, err = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield
