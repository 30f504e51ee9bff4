"""Word that who has brought a disk may hear that it is there: a file that noded writes to.

By then the instance is recorded, so whoever deletes what he has does not delete the only one.
"""

import os
import time

from common.errors import NodeFailure
from noded.copies.ending import FIRST_PAUSE_S, LONGEST_PAUSE_S
from noded.copies.serving import SYNC_S

FILE = "confirmation"


def confirm(descriptor: int) -> None:
    """Give the word, which cannot be taken back."""
    os.pwrite(descriptor, b"1", 0)


def see_confirmed(descriptor: int, path: str) -> None:
    """Return when the word is given.

    Raises:
        NodeFailure: it was not, for as long as who has brought the disk ``path`` waits.
    """
    until, pause_s = time.monotonic() + SYNC_S, FIRST_PAUSE_S
    while not os.fstat(descriptor).st_size:
        if time.monotonic() > until:
            raise NodeFailure(
                f"All of {path} has arrived, and its cluster has not recorded that for "
                f"{SYNC_S / 60:.0f} minutes."
            )
        time.sleep(pause_s)  # noqa: TID251 -- its process has no loop
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
