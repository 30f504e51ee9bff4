"""How many are enough."""

from collections.abc import Collection

from common.names import NodeName


def needed(of: int) -> int:
    """Return the smallest number that is more than half of ``of``."""
    return of // 2 + 1


def is_majority(count: int, of: int) -> bool:
    """Tell whether ``count`` is more than half of ``of``; of nothing there is no majority."""
    return 2 * count > of


def is_durable(stored: Collection[NodeName], *candidates: Collection[NodeName]) -> bool:
    """Tell whether a commit that is on the disks of ``stored`` may be acknowledged.

    Args:
        stored: nodes that have it on disk, this one included.
        candidates: the master candidates. A commit that changes their list passes both
            lists, the one before and the one after, and the list changes by one node at a
            time: then any two majorities that follow each other have a node in common.
    """
    return all(is_majority(len(set(stored) & set(each)), len(set(each))) for each in candidates)
