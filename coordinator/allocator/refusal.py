"""Why a node cannot take an instance, for programs and in words."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum, StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Reason(IntEnum):
    """One reason; 0 is none. Where several hold, the first in hail's order of checks counts."""

    NONE = 0
    MEMORY = 1
    MEMORY_N1 = 2
    DISK = 3
    SPINDLES = 4
    CPU = 5
    TAGS = 6
    MIGRATION = 7
    POLICY_MEMORY = 8
    POLICY_DISK = 9
    POLICY_CPU = 10
    POLICY_SPINDLES = 11
    POLICY_DISK_COUNT = 12
    POLICY_TEMPLATE = 13
    REDUNDANCY = 14
    PARTNER = 15
    OFFLINE = 16
    NOT_VM_CAPABLE = 17
    DRAINED = 18
    GROUP = 19
    UNALLOCABLE = 20
    RESTRICTED = 21
    NETWORK = 22
    FREE_SPINDLES = 23

    @property
    def hail_name(self) -> str:
        """What hail calls it; empty where hail counts no failure."""
        return _HAIL_NAMES.get(self, "")

    def in_words(self, count: int) -> str:
        """Predicate for so many nodes: "lacks memory", "lack memory"."""
        verb, _, rest = _WORDS[self].partition(" ")
        return f"{verb if count == 1 else _OF_MANY[verb]} {rest}"


REASONS = tuple(Reason)
"""By code; looking one up is faster than making it."""


class Failure(StrEnum):
    """What hail counts reasons as, in the order in which it lists them."""

    MEM = "FailMem"
    DISK = "FailDisk"
    CPU = "FailCPU"
    N1 = "FailN1"
    TAGS = "FailTags"
    MIG = "FailMig"
    DISK_COUNT = "FailDiskCount"
    SPINDLES = "FailSpindles"


_HAIL_NAMES = {
    Reason.MEMORY: Failure.MEM,
    Reason.MEMORY_N1: Failure.MEM,
    Reason.DISK: Failure.DISK,
    Reason.SPINDLES: Failure.DISK,
    Reason.FREE_SPINDLES: Failure.SPINDLES,
    Reason.CPU: Failure.CPU,
    Reason.REDUNDANCY: Failure.N1,
    Reason.TAGS: Failure.TAGS,
    Reason.MIGRATION: Failure.MIG,
    Reason.POLICY_MEMORY: Failure.MEM,
    Reason.POLICY_DISK: Failure.DISK,
    Reason.POLICY_CPU: Failure.CPU,
    Reason.POLICY_SPINDLES: Failure.SPINDLES,
    Reason.POLICY_DISK_COUNT: Failure.DISK_COUNT,
    Reason.POLICY_TEMPLATE: Failure.DISK,
}

_WORDS = {
    Reason.NONE: "can take it",
    Reason.MEMORY: "lacks memory",
    Reason.MEMORY_N1: "has memory only for failovers",
    Reason.DISK: "lacks disk space",
    Reason.SPINDLES: "lacks spindles",
    Reason.FREE_SPINDLES: "lacks free spindles",
    Reason.CPU: "lacks processors",
    Reason.TAGS: "has an instance with the same exclusion tag",
    Reason.MIGRATION: "does not accept migration from its present node",
    Reason.POLICY_MEMORY: "is in a group whose policy forbids this memory size",
    Reason.POLICY_DISK: "is in a group whose policy forbids this disk size",
    Reason.POLICY_CPU: "is in a group whose policy forbids this number of processors",
    Reason.POLICY_SPINDLES: "is in a group whose policy forbids this spindle use",
    Reason.POLICY_DISK_COUNT: "is in a group whose policy forbids this number of disks",
    Reason.POLICY_TEMPLATE: "is in a group whose policy forbids this disk template",
    Reason.REDUNDANCY: "would leave a node that can no longer be evacuated",
    Reason.PARTNER: "finds no second node",
    Reason.OFFLINE: "is offline",
    Reason.NOT_VM_CAPABLE: "is not VM-capable",
    Reason.DRAINED: "is drained",
    Reason.GROUP: "is in another group",
    Reason.UNALLOCABLE: "is in a group closed to new instances",
    Reason.RESTRICTED: "was not asked for",
    Reason.NETWORK: "is in a group without a network it needs",
}
_OF_MANY = {
    "can": "can", "lacks": "lack", "has": "have", "does": "do", "is": "are", "would": "would",
    "finds": "find", "was": "were",
}  # fmt: skip


def tally(reasons: Iterable[Reason]) -> dict[Reason, int]:
    """Count reasons, the most frequent first."""
    return dict(Counter(reasons).most_common())


def in_words(counts: Mapping[Reason, int]) -> str:
    """Read out counts of nodes: "2 nodes lack memory, 1 is offline"."""
    phrases = [f"{count} {reason.in_words(count)}" for reason, count in counts.items()]
    if not phrases:
        return "there is none"
    number, _, rest = phrases[0].partition(" ")
    first = f"{number} {'node' if number == '1' else 'nodes'} {rest}"
    return ", ".join([first, *phrases[1:]])
