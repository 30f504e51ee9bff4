"""How well a cluster is balanced: hail's score, lower is better.

Twenty terms. Most are the spread (population standard deviation) of one figure over the
online nodes, the others sums of things that should not be. Floats are combined in hail's
order throughout, so that equal situations get equal scores here exactly when they do there.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Term(IntEnum):
    """The terms in the order in which they are added; names as hail prints them."""

    FREE_MEM_CV = 0
    FREE_DISK_CV = 1
    N1_CNT = 2
    RESERVED_MEM_CV = 3
    OFFLINE_ALL_CNT = 4
    OFFLINE_PRI_CNT = 5
    VCPU_RATIO_CV = 6
    CPU_LOAD_CV = 7
    MEM_LOAD_CV = 8
    DISK_LOAD_CV = 9
    NET_LOAD_CV = 10
    PRI_TAGS_SCORE = 11
    SPINDLES_CV = 12
    FREE_MEM_CV_FORTH = 13
    FREE_DISK_CV_FORTH = 14
    VCPU_RATIO_CV_FORTH = 15
    SPINDLES_CV_FORTH = 16
    LOCATION_SCORE = 17
    LOCATION_EXCLUSION_SCORE = 18
    RESERVED_MEM_RTOTAL = 19


class TermKind(Enum):
    SPREAD = "spread"  # over online nodes
    SUM = "sum"
    CROWDING = "crowding"  # a count that belongs to no node


WEIGHTS = (0.5, 0.5, 1, 1, 4, 16, 0.5, 1, 1, 1, 1, 2, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.25)


def kind_of(term: Term) -> TermKind:
    if term is Term.LOCATION_EXCLUSION_SCORE:
        return TermKind.CROWDING
    return TermKind.SPREAD if term.name.endswith(("_CV", "_CV_FORTH")) else TermKind.SUM


KINDS = tuple((term, kind_of(term), WEIGHTS[term]) for term in Term)
SPREADS = tuple(term for term in Term if kind_of(term) is TermKind.SPREAD)

TOLERANCE = 1e-6
"""More than twice the error of an estimated score.

An error of 1e-15 in a variance, which rounding makes, is one of 3e-8 in its root.
"""
