"""What hspace prints: for people, or as lines for a shell."""

import math
from collections.abc import Mapping, Sequence

from coordinator.allocator.packing.codes import Failure
from coordinator.allocator.packing.filling import Filled
from coordinator.allocator.packing.tiers import runs_of
from coordinator.allocator.snapshot import Instance
from coordinator.htools.output import say
from coordinator.htools.resources import Resources
from coordinator.htools.tables import show, show_float


def _ranked(failures: Mapping[Failure, int]) -> list[tuple[str, int]]:
    """The most frequent first; in the order in which they are listed among equals."""
    counts = [(failure.label, count) for failure, count in failures.items()]
    if len(counts) > 1:
        counts.append(("FailInternal", 0))
    return sorted(counts, key=lambda each: -each[1])


class Human:
    """Sentences and percentages."""

    def __init__(self, initial: Resources, score: float, *, is_exclusive: bool) -> None:
        self._initial, self._score, self._is_exclusive = initial, score, is_exclusive

    def say_cluster(self, nodes: int) -> None:
        """What there is at the start."""
        total = self._initial
        say(f"The cluster has {nodes} nodes and the following resources:")
        spindles = f", SPN {total.total_spindles:.0f}" if self._is_exclusive else ""
        say(
            f"  MEM {total.total_memory:.0f}, DSK {total.total_disk:.0f},"
            f" CPU {total.total_cpus:.0f}, VCPU {total.vcpus}{spindles}."
        )
        count = total.instances
        existing = f"{count} initial instances" if count else "no initial instances"
        say(f"There are {existing} on the cluster.")

    def say_spec(self, title: str, prefix: str, one: Instance) -> None:  # noqa: ARG002 - as Machine's
        """The instance that is placed."""
        spindles = f", SPN {one.disk_spindles}" if self._is_exclusive else ""
        say(f"{title} instance spec is:")
        say(
            f"  MEM {one.memory}, DSK {one.disk}, CPU {one.vcpus}{spindles},"
            f" using disk template '{one.template}'."
        )

    def say_tiered(self, result: Filled, after: Resources) -> None:
        """What came of shrinking instances."""
        runs = runs_of(result.filling.placed)
        say("Tiered allocation results:")
        if not runs:
            say("  - no instances allocated")
        for one, count in runs:
            spindles = f", SPN {one.disk_spindles}" if self._is_exclusive else ""
            say(
                f"  - {count:3d} instances of spec MEM {one.memory}, DSK {one.disk},"
                f" CPU {one.vcpus}{spindles}"
            )
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
        shares = {
            "memory": after.memory_share,
            "disk": after.disk_share,
            "vcpu": after.cpu_share,
        }
        if self._is_exclusive:
            shares["spindles"] = after.spindle_share
        width = max(map(len, shares))
        for what, share in shares.items():
            say(f"  - {what:>{width}} usage efficiency: {show(share * 100, 2):>5}%")

    def say_end(self) -> None:
        """People see that it is the end."""


class Machine:
    """``HTS_KEY=value`` lines, quoted for a shell."""

    def __init__(self, initial: Resources, score: float, *, is_exclusive: bool) -> None:
        self._initial, self._score, self._is_exclusive = initial, score, is_exclusive

    def _say(self, rows: Sequence[tuple[str, object]], prefix: str = "") -> None:
        for key, value in rows:
            text = str(value)
            plain = all(letter.isascii() and (letter.isalnum() or letter == ".") for letter in text)
            say(f"HTS_{prefix}{key}={text}" if plain else f"HTS_{prefix}{key}='{text}'")

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
        self._say_pools(after)

    def _say_pools(self, after: Resources) -> None:
        """Used, then taken by what was placed, then out of reach."""
        before = self._initial
        pools = {
            "USED": (
                before.used_cpus, before.normal_cpus, before.used_memory, before.used_disk,
                before.used_spindles,
            ),
            "POOL": (
                after.used_cpus - before.used_cpus,
                after.normal_cpus - before.normal_cpus,
                after.used_memory - before.used_memory,
                after.used_disk - before.used_disk,
                after.used_spindles - before.used_spindles,
            ),
            "UNAV": (
                after.vcpus - after.used_cpus,
                after.total_cpus - after.normal_cpus,
                int(after.total_memory) - after.used_memory,
                int(after.total_disk) - after.used_disk,
                int(after.total_spindles) - after.used_spindles,
            ),
        }  # fmt: skip
        for name, (cpus, normal, memory, disk, spindles) in pools.items():
            rows = (
                ("CPU", cpus), ("NPU", show_float(normal)), ("MEM", memory), ("DSK", disk),
                ("SPN", spindles),
            )  # fmt: skip
            self._say(rows, f"KM_{name}_")

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
