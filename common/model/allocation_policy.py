"""Whether new instances may go to a group."""

from enum import StrEnum


class AllocationPolicy(StrEnum):
    """What a group is for, as Ganeti names it."""

    PREFERRED = "preferred"
    LAST_RESORT = "last_resort"
    UNALLOCABLE = "unallocable"
