"""What commands print: nothing in it can make the terminal do anything.

Names, messages of jobs and errors hold what nodes, QEMU and other people said. They all come out
here, so nobody who prints has to think of it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

from common.printable import printable


class PrintableStream:
    """A text stream that writes control characters as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
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
