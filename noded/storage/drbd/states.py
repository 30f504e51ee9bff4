"""What the numbers mean by which all versions of DRBD tell how a device is.

Source: linux/drbd.h of Linux 6.1, for DRBD 8.4; that of DRBD 9.2 for 9. What is copied, and which
way, has the same numbers in both.
"""

from common.noderpc.mirrors import Copying

PRIMARY = 1
STANDALONE, DISCONNECTING = 0, 1
TO_PEER = (11, 13, 16, 20, 22)  # starting, exchanging bitmaps, copying, paused, ahead
FROM_PEER = (12, 14, 15, 17, 21, 23)
VERIFYING = (18, 19)
PAUSED = (20, 21)


def copying(number: int) -> Copying:
    """Return what is done with the difference of two copies."""
    for numbers, what in (
        (TO_PEER, Copying.TO_PEER), (FROM_PEER, Copying.FROM_PEER), (VERIFYING, Copying.VERIFYING)
    ):  # fmt: skip
        if number in numbers:
            return what
    return Copying.NOTHING


def generation(number: int) -> str:
    """Return a generation as it is shown; the lowest bit tells who is primary, and is left out."""
    return f"{number & ~1:016X}"
