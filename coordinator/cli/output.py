"""What commands print: nothing in it can make the terminal do anything.

Names, messages of jobs and errors hold what nodes, QEMU and other people said. They all come out
here, so nobody who prints has to think of it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from common.printable import PrintableStream, printable
from coordinator.cli.colour import SEQUENCE, has_colour


class PaintableStream(PrintableStream):
    """One where our own few colours pass, if there are any.

    Somebody else's text could have them, too, which moves nothing, hides nothing, and looks like
    what it is.
    """

    def write(self, text: str) -> int:
        if not has_colour(self._stream):
            return super().write(text)
        plain_and_painted = SEQUENCE.split(text)
        plain_and_painted[::2] = map(printable, plain_and_painted[::2])
        self._stream.write("".join(plain_and_painted))
        return len(text)


@contextmanager
def printable_output() -> Iterator[None]:
    """Have all that is printed come out harmless."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not know every character
            stream.reconfigure(errors="replace")
    out, err = PaintableStream(sys.stdout), PaintableStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield
