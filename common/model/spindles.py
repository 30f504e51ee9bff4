"""Physical volumes that one disk alone has: how many it needs, and which go together. Pure.

Ganeti calls them spindles. Where storage is exclusive, all of a volume group are of about one size,
so that a disk fits on as many of another node.

Source: design “partitioned Ganeti” and the constants ``PART_MARGIN`` and ``PART_RESERVED`` of
Ganeti 3.0.
"""

from common.names import MiB

MARGIN = 0.01  # by which sizes may differ, each way
RESERVED = 0.02  # of each that is left free, for LVM's own use


def standard_size(smallest: MiB) -> MiB:
    """Return how much of each physical volume counts, if this is the size of the smallest."""
    return MiB(int(smallest // (1 + MARGIN + RESERVED)))


def spindles_for(size: MiB, smallest: MiB) -> int | None:
    """Return how many a disk needs at least; None if there is nothing on them."""
    standard = standard_size(smallest)
    return -(-size // standard) if standard else None


def differ_too_much(smallest: MiB, largest: MiB) -> bool:
    """Tell whether there is no size from which both differ by no more than the margin."""
    return smallest * (1 + MARGIN) < largest * (1 - MARGIN)
