"""Why a node cannot take an instance, for programs and in words."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

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
        one, many = _WORDS[self]
        return one if count == 1 else many


REASONS = tuple(Reason)
"""By code; looking one up is faster than making it."""

HAIL_NAMES = (
    "FailMem", "FailDisk", "FailCPU", "FailN1", "FailTags", "FailMig", "FailDiskCount",
    "FailSpindles",
)  # fmt: skip
"""What hail calls reasons, in the order in which it lists them."""

_HAIL_NAMES = {
    Reason.MEMORY: "FailMem",
    Reason.MEMORY_N1: "FailMem",
    Reason.DISK: "FailDisk",
    Reason.SPINDLES: "FailDisk",
    Reason.FREE_SPINDLES: "FailSpindles",
    Reason.CPU: "FailCPU",
    Reason.REDUNDANCY: "FailN1",
    Reason.TAGS: "FailTags",
    Reason.MIGRATION: "FailMig",
    Reason.POLICY_MEMORY: "FailMem",
    Reason.POLICY_DISK: "FailDisk",
    Reason.POLICY_CPU: "FailCPU",
    Reason.POLICY_SPINDLES: "FailSpindles",
    Reason.POLICY_DISK_COUNT: "FailDiskCount",
    Reason.POLICY_TEMPLATE: "FailDisk",
}

_WORDS = {
    Reason.NONE: ("can take it", "can take it"),
    Reason.MEMORY: ("lacks memory", "lack memory"),
    Reason.MEMORY_N1: (
        "has memory only for the instances it stands in for",
        "have memory only for the instances they stand in for",
    ),
    Reason.DISK: ("lacks disk space", "lack disk space"),
    Reason.SPINDLES: ("lacks spindles", "lack spindles"),
    Reason.FREE_SPINDLES: ("lacks free spindles", "lack free spindles"),
    Reason.CPU: ("lacks processors", "lack processors"),
    Reason.TAGS: (
        "has an instance with the same exclusion tag",
        "have an instance with the same exclusion tag",
    ),
    Reason.MIGRATION: (
        "does not accept migration from its present node",
        "do not accept migration from its present node",
    ),
    **{
        reason: (
            f"is in a group whose policy forbids {what}",
            f"are in a group whose policy forbids {what}",
        )
        for reason, what in (
            (Reason.POLICY_MEMORY, "this memory size"),
            (Reason.POLICY_DISK, "this disk size"),
            (Reason.POLICY_CPU, "this number of processors"),
            (Reason.POLICY_SPINDLES, "this spindle use"),
            (Reason.POLICY_DISK_COUNT, "this number of disks"),
            (Reason.POLICY_TEMPLATE, "this disk template"),
        )
    },
    Reason.REDUNDANCY: (
        "would leave a node that can no longer be evacuated",
        "would leave a node that can no longer be evacuated",
    ),
    Reason.PARTNER: ("finds no second node", "find no second node"),
    Reason.OFFLINE: ("is offline", "are offline"),
    Reason.NOT_VM_CAPABLE: ("is not VM-capable", "are not VM-capable"),
    Reason.DRAINED: ("is drained", "are drained"),
    Reason.GROUP: ("is in another group", "are in another group"),
    Reason.UNALLOCABLE: (
        "is in a group closed to new instances",
        "are in a group closed to new instances",
    ),
    Reason.RESTRICTED: ("was not asked for", "were not asked for"),
    Reason.NETWORK: (
        "is in a group without a network it needs",
        "are in a group without a network it needs",
    ),
}


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
