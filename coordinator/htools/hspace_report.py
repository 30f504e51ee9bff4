"""What hspace prints: for people, or as lines for a shell."""

import math
from collections.abc import Mapping, Sequence

from coordinator.allocator.packing.filling import Filled
from coordinator.allocator.packing.tiers import runs_of
from coordinator.allocator.refusal import Failure
from coordinator.allocator.snapshot import Instance
from coordinator.htools.output import say, say_value
from coordinator.htools.resources import Resources
from coordinator.htools.tables import show, show_float


def _ranked(failures: Mapping[Failure, int]) -> list[tuple[str, int]]:
    """The most frequent first; in the order in which they are listed among equals."""
    counts = [(str(failure), count) for failure, count in failures.items()]
    if len(counts) > 1:
        counts.append(("FailInternal", 0))
    return sorted(counts, key=lambda each: -each[1])


class Human:
    """Sentences and percentages."""

    def __init__(self, initial: Resources, score: float, *, is_exclusive: bool) -> None:
        self._initial, self._score, self._is_exclusive = initial, score, is_exclusive

    def say_cluster(self, nodes: int) -> None:
        """What there is at the start."""
        total, count = self._initial, self._initial.instances
        say(f"The cluster has {nodes} nodes and the following resources:")
        spindles = f", SPN {total.total_spindles:.0f}" if self._is_exclusive else ""
        say(
            f"  MEM {total.total_memory:.0f}, DSK {total.total_disk:.0f},"
            f" CPU {total.total_cpus:.0f}, VCPU {total.vcpus}{spindles}."
        )
        say(f"There are {count or 'no'} initial instances on the cluster.")

    def say_spec(self, title: str, prefix: str, one: Instance) -> None:  # noqa: ARG002 - as Machine's
        """The instance that is placed."""
        say(f"{title} instance spec is:")
        say(f"  {self._spec(one)}, using disk template '{one.template}'.")

    def say_tiered(self, result: Filled, after: Resources) -> None:
        """What came of shrinking instances."""
        runs = runs_of(result.filling.placed)
        say("Tiered allocation results:")
        if not runs:
            say("  - no instances allocated")
        for one, count in runs:
            say(f"  - {count:3d} instances of spec {self._spec(one)}")
        self._say_outcome(result, after)

    def say_standard(self, result: Filled, after: Resources) -> None:
        """What came of equal instances."""
        say("Normal (fixed-size) allocation results:")
        say(f"  - {len(result.filling.placed):3d} instances allocated")
        self._say_outcome(result, after)

    def _say_outcome(self, result: Filled, after: Resources) -> None:
        say(f"  - most likely failure reason: {_ranked(result.failures)[0][0]}")
        say(f"  - initial cluster score: {show(self._score)}")
        say(f"  -   final cluster score: {show(result.filling.score())}")
        shares = after.shares
        if not self._is_exclusive:
            shares = {what: share for what, share in shares.items() if what != "spindles"}
        width = max(map(len, shares))
        for what, share in shares.items():
            say(f"  - {what:>{width}} usage efficiency: {show(share * 100, 2):>5}%")

    def _spec(self, one: Instance) -> str:
        spindles = f", SPN {one.disk_spindles}" if self._is_exclusive else ""
        return f"MEM {one.memory}, DSK {one.disk}, CPU {one.vcpus}{spindles}"

    def say_end(self) -> None:
        """People see that it is the end."""


class Machine:
    """``HTS_KEY=value`` lines, quoted for a shell."""

    def __init__(self, initial: Resources, score: float, *, is_exclusive: bool) -> None:
        self._initial, self._score, self._is_exclusive = initial, score, is_exclusive

    def _say(self, rows: Sequence[tuple[str, object]], prefix: str = "") -> None:
        for key, value in rows:
            say_value(f"HTS_{prefix}{key}", value)

    def say_cluster(self, nodes: int) -> None:
        """What there is at the start."""
        total = self._initial
        self._say(
            [
                ("MEM", f"{total.total_memory:.0f}"), ("DSK", f"{total.total_disk:.0f}"),
                ("CPU", f"{total.total_cpus:.0f}"), ("VCPU", total.vcpus),
                ("SPN", f"{total.total_spindles:.0f}"), ("NODES", nodes),
            ],
            "CLUSTER_",
        )  # fmt: skip
        self._say(total.shown(self._score), "INI_")

    def say_spec(self, title: str, prefix: str, one: Instance) -> None:  # noqa: ARG002 - as Human's
        """The instance that is placed."""
        nodes = 2 if one.is_mirrored else 1
        self._say(
            [
                ("MEM", one.memory), ("DSK", one.disk), ("CPU", one.vcpus),
                ("SPN", one.disk_spindles), ("RQN", nodes), ("DISK_TEMPLATE", one.template),
            ],
            f"{prefix}_",
        )  # fmt: skip

    def say_tiered(self, result: Filled, after: Resources) -> None:
        """What came of shrinking instances, and what that leaves out of reach."""
        self._say(after.shown(result.filling.score()), "TRL_")
        runs = [
            f"{one.memory},{one.disk},{one.vcpus},{one.disk_spindles}={count}"
            for one, count in runs_of(result.filling.placed)
        ]
        self._say([("TSPEC", " ".join(runs))])
        before = self._initial.used
        pools = {
            "USED": before,  # then what was placed takes, then what is out of reach
            "POOL": [now - was for now, was in zip(after.used, before, strict=True)],
            "UNAV": [there - now for there, now in zip(after.total, after.used, strict=True)],
        }
        for name, (cpus, normal, *sizes) in pools.items():
            values = zip(
                ("CPU", "NPU", "MEM", "DSK", "SPN"), (cpus, show_float(normal), *sizes), strict=True
            )
            self._say([*values], f"KM_{name}_")

    def say_standard(self, result: Filled, after: Resources) -> None:
        """What came of equal instances."""
        self._say(after.shown(result.filling.score()), "FIN_")
        count = len(result.filling.placed)
        usage = self._initial.instances / after.instances if after.instances else math.nan
        ranked = _ranked(result.failures)
        self._say(
            [
                ("USAGE", show(usage)),
                ("INSTANCES", count),
                ("FAIL_REASON", ranked[0][0].upper()),
                *((f"{label.upper()}_CNT", number) for label, number in ranked),
            ],
            "ALLOC_",
        )

    def say_end(self) -> None:
        """A mark that nothing is missing."""
        self._say([("OK", 1)])
