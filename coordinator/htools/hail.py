"""``hail``: read a request in Ganeti's iallocator protocol, print the answer."""

from __future__ import annotations

import gc
import os
import sys

from common.errors import InvalidRequest
from coordinator.htools.catalogue import named
from coordinator.htools.output import say
from coordinator.htools.program import status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, TextIO

    from coordinator.htools.options import Parsed

_LARGEST_INPUT = 512 << 20  # characters; a request for 2,000 nodes has 10 million

OPTIONS = named(
    "print-nodes save text-data simulate verbose ignore-dynu ignore-soft-errors no-capacity-checks"
    " restrict-allocation-to mond mond-data mond-xen static-kvm-node-memory strict-compat",
    save="save the cluster before and after to FILE.pre-ialloc and FILE.post-ialloc",
    verbose="say on standard error why each node was refused; twice: what was asked, too",
    strict_compat="answer as Ganeti's hail does even where that is plainly wrong",
)


def main() -> NoReturn:
    """Entry point; the exit status is 0 even if nothing fits, as the protocol wants it."""
    gc.disable()  # all of a message is kept to the end, and looking through it again takes long
    status = run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
    sys.stderr.flush()
    os._exit(status)  # taking a large message apart piece by piece would be wasted time


def run(words: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """The command on given streams; returns the exit status."""

    def work(parsed: Parsed) -> int:
        from coordinator.iallocator.jsontext import parse

        message = parse(_request_text(parsed, stdin))
        from coordinator.htools.hail_work import answer

        say(answer(message, parsed))
        return 0

    return status_of("hail", OPTIONS, work, words, (stdout, stderr))


def _request_text(parsed: Parsed, stdin: TextIO) -> str:
    if not parsed.arguments:
        raise InvalidRequest("This program needs an input file.")
    if len(parsed.arguments) > 1:
        raise InvalidRequest("Only one argument is accepted (the input file)")
    (name,) = parsed.arguments
    try:
        if name == "-":
            text = stdin.read(_LARGEST_INPUT + 1)
        else:
            with open(name, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
                text = file.read(_LARGEST_INPUT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read the request: {error}") from error
    if len(text) > _LARGEST_INPUT:
        raise InvalidRequest(f"The input has more than {_LARGEST_INPUT} characters.")
    return text


if __name__ == "__main__":
    main()
