"""Word that the other side of a copy between clusters may go on: a file that noded writes to.

Who expects a disk waits for it before he says that all is there: by then the instance is recorded,
so whoever deletes what he has does not delete the only one. Who has brought it waits before he says
that he heard so: by then his cluster has recorded that it lets go of the instance, so whoever
starts it does not start a second one.
"""

import os
import time
from collections.abc import Callable

from common.errors import NodeFailure
from noded.copies.ending import FIRST_PAUSE_S, LONGEST_PAUSE_S
from noded.copies.serving import SYNC_S

FILE = "confirmation"


def confirm(descriptor: int) -> None:
    """Give the word, which cannot be taken back."""
    os.pwrite(descriptor, b"1", 0)


def see_confirmed(
    descriptor: int, so_far: str, *, go_on: Callable[[], None] = lambda: None
) -> None:
    """Return when the word is given; ``go_on`` is called now and then meanwhile, and may raise.

    Raises:
        NodeFailure: it was not, for as long as the other side waits; it begins with ``so_far``.
    """
    until, pause_s = time.monotonic() + SYNC_S, FIRST_PAUSE_S
    while not os.fstat(descriptor).st_size:
        if time.monotonic() > until:
            raise NodeFailure(
                f"{so_far}, and the cluster of this node has not recorded that for "
                f"{SYNC_S / 60:.0f} minutes."
            )
        go_on()
        time.sleep(pause_s)  # noqa: TID251 -- its process has no loop
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
