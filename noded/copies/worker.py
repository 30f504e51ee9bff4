"""The process of one side of a copy: ``python -P -m noded.copies.worker DIRECTORY DESCRIPTOR``.

Data goes through here and not through noded, whose memory is locked and whose answers others wait
for. It outlives noded. The directory only tells it from others; what it is to do is read from the
descriptor, since everybody can read a command line.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from common.messages import from_json
from noded.copies.bringing import Bringer
from noded.copies.expecting import Expecter
from noded.copies.fetching import Fetcher
from noded.copies.orders import Bringing, Expecting, Fetching, Sending, Side, Task
from noded.copies.sending import Sender

ROOT, NOBODY = 0, 65534
STANDARD = (0, 1, 2)
LARGEST_ORDER = 64 << 10


def main() -> None:
    descriptor = int(sys.argv[2])
    order = from_json(os.read(descriptor, LARGEST_ORDER), Task, what="what to copy").side
    _keep_only(order.descriptors)
    side = _side(order)
    _become_nobody()
    side.run()


def _side(order: Side) -> Sender | Fetcher | Expecter | Bringer:
    match order:
        case Sending():
            return Sender(order)
        case Fetching():
            return Fetcher(order)
        case Expecting():
            return Expecter(order)
        case Bringing():
            return Bringer(order)


def _keep_only(descriptors: Iterable[int]) -> None:
    """Close what was not meant for us: others may wait for its being closed."""
    kept = {*STANDARD, *descriptors}
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number not in kept:
            with suppress(OSError):  # that of the list itself
                os.close(number)


def _become_nobody() -> None:
    """Give up what is not needed any more: all that is used is open by now."""
    if os.geteuid() == ROOT:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


if __name__ == "__main__":
    main()
