"""``hspace``: how many more instances a cluster has room for."""

import os
import sys
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from common.errors import InvalidRequest, NoCapacity
from common.model.policy import Spec
from common.names import MiB
from coordinator.allocator.board import Board
from coordinator.allocator.books import open_books
from coordinator.allocator.fill import (
    Failures, Filling, Result, fill, instance_of, tally, tiered, with_spindle_use,
)  # fmt: skip
from coordinator.allocator.inventory import TEMPLATES, Instance, Inventory
from coordinator.allocator.shift import Failure
from coordinator.htools import source
from coordinator.htools.options import Option, Parsed, Takes, number, run
from coordinator.htools.resources import Resources, resources_of, shown
from coordinator.htools.simulate import parse_unit
from coordinator.htools.tables import show


def _template(text: str) -> str:
    if text not in TEMPLATES:
        raise InvalidRequest(f'Invalid string value for type DiskTemplate: "{text}"')
    return text


def _spec(text: str) -> Spec:
    fields = text.split(",")
    if len(fields) not in {3, 4}:
        raise InvalidRequest(f"Invalid specification '{text}', expected disk,ram,cpu[,spindles]")
    try:
        cpus, spindles = int(fields[2]), int(fields[3]) if len(fields) == 4 else 1
    except ValueError as error:
        raise InvalidRequest(f"Invalid specification '{text}'") from error
    return Spec(
        memory_size=MiB(parse_unit(fields[1])), cpu_count=cpus, disk_count=1,
        disk_size=MiB(parse_unit(fields[0])), nic_count=0, spindle_use=spindles,
    )  # fmt: skip


OPTIONS = (
    source.TEXT,
    Option(
        key="template", name="disk-template", argument="TEMPLATE", takes=Takes.SOMETHING,
        read=_template, help="select the desired disk template",
    ),
    Option(
        key="spindle_use", name="spindle-use", argument="SPINDLES", takes=Takes.SOMETHING,
        read=number("spindles", int),
        help="select how many virtual spindle instances use [default read from cluster]",
    ),
    source.SIMULATE,
    source.LUXI,
    source.VERBOSE,
    source.QUIET,
    Option(
        key="accept", name="accept-existing-errors", default=False,
        help="Accept existing N+1 violations; just don't add new ones",
    ),
    source.OFFLINE,
    source.MACHINE,
    source.MAX_CPU,
    Option(
        key="length", name="max-length", letter="l", argument="N", takes=Takes.SOMETHING,
        read=number("max solution length", int), default=-1,
        help="cap the solution at this many balancing or allocation rounds (useful for very"
        " unbalanced clusters or empty clusters)",
    ),
    source.MIN_DISK,
    Option(
        key="standard", name="standard-alloc", argument="STDSPEC", takes=Takes.SOMETHING,
        read=_spec, help="enable standard specs allocation, given as 'disk,ram,cpu'",
    ),
    Option(
        key="tiered", name="tiered-alloc", argument="TSPEC", takes=Takes.SOMETHING,
        read=_spec, help="enable tiered specs allocation, given as 'disk,ram,cpu'",
    ),
    Option(
        key="check", name="no-capacity-checks", default=True, without=False,
        help="disable capacity checks (like global N+1 redundancy)",
    ),
    source.STATIC_MEMORY,
)  # fmt: skip

_HTS = "HTS_"


def main() -> None:
    """Run the command."""
    run("hspace", OPTIONS, measure)


def measure(options: Parsed) -> int:
    """Load, fill, print; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    opening = open_books(cluster, least_disk=options.min_disk)
    if options.verbosity > 0:
        source.warn_of_missing(cluster, opening)
    template = options.template or cluster.policy.disk_templates[0]
    if options.check and template != "drbd":
        raise InvalidRequest(
            f"Room for instances of disk template {template} is only measured without looking at"
            " whether every node could still be emptied; give --no-capacity-checks."
        )
    bad = opening.books.fails_n1 & ~opening.books.offline
    groups = {cluster.nodes[node].group for node in np.flatnonzero(bad).tolist()}
    closed = frozenset[int]() if options.accept else frozenset(groups)
    return _Run(options, cluster, Filling(opening, closed), template, is_bad=bool(groups)).go()


class _Run:
    def __init__(
        self, options: Parsed, cluster: Inventory, start: Filling, template: str, *, is_bad: bool
    ) -> None:
        self._options, self._cluster, self._start = options, cluster, start
        self._template, self._is_machine = template, bool(options.machine)
        self._is_hopeless = is_bad and not options.accept
        self._exclusive = any(node.exclusive for node in cluster.nodes)
        self._initial = resources_of(start)

    def go(self) -> int:
        self._say_cluster()
        policy = self._cluster.policy
        use = self._options.spindle_use
        largest = [pair.max for pair in policy.minmax]
        if self._options.tiered is not None:
            largest = [self._options.tiered]
        specs = [with_spindle_use(spec, use) for spec in largest]
        wanted = [instance_of(s, self._template, exclusive=self._exclusive) for s in specs]
        self._say_spec("Tiered (initial size)", "TSPEC_INI", wanted[0])
        result = Result(self._start, _no_failures())
        for one in wanted:
            result = self._filled(tiered, result.filling, one)
        self._say_tiered(result)
        spec = with_spindle_use(self._options.standard or policy.std, use)
        one = instance_of(spec, self._template, exclusive=self._exclusive)
        self._say_spec("Standard (fixed-size)", "SPEC", one)
        self._say_standard(self._filled(fill, self._start, one))
        if self._is_machine:
            self._say("OK", "1")
        return 0

    def _filled(
        self, way: Callable[[Filling, Instance, int | None], Result], start: Filling, one: Instance
    ) -> Result:
        if self._is_hopeless:
            return Result(start, _no_failures() | {Failure.N1: 1})
        if not start.has_candidates(self._template):
            raise NoCapacity("failure during allocation: Not enough online nodes")
        limit = self._options.length if self._options.length >= 0 else None
        return way(start, one, limit)

    def _say(self, key: str, value: str) -> None:
        plain = all(letter.isascii() and (letter.isalnum() or letter == ".") for letter in value)
        quoted = value if plain else f"'{value}'"
        sys.stdout.write(f"{_HTS}{key}={quoted}\n")

    def _line(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")

    def _say_cluster(self) -> None:
        total, nodes = self._initial, self._cluster.nodes
        if self._is_machine:
            for key, value in (
                ("MEM", f"{total.total_memory:.0f}"), ("DSK", f"{total.total_disk:.0f}"),
                ("CPU", f"{total.total_cpus:.0f}"), ("VCPU", f"{total.vcpus:.0f}"),
                ("SPN", f"{total.total_spindles:.0f}"), ("NODES", str(len(nodes))),
            ):  # fmt: skip
                self._say(f"CLUSTER_{key}", value)
            self._say_statistics("INI", self._start)
            return
        count = self._initial.instances
        self._line(f"The cluster has {len(nodes)} nodes and the following resources:")
        self._line(
            f"  MEM {total.total_memory:.0f}, DSK {total.total_disk:.0f},"
            f" CPU {total.total_cpus:.0f}, VCPU {total.vcpus:.0f}."
        )
        told = f"{count} initial instances" if count else "no initial instances"
        self._line(f"There are {told} on the cluster.")

    def _say_statistics(self, prefix: str, filling: Filling) -> None:
        for key, value in shown(resources_of(filling), filling.score()):
            self._say(f"{prefix}_{key}", value)

    def _say_spec(self, title: str, prefix: str, one: Instance) -> None:
        nodes = 2 if self._template == "drbd" else 1
        if self._is_machine:
            for key, value in (
                ("MEM", one.memory), ("DSK", one.disk), ("CPU", one.vcpus),
                ("SPN", one.spindle_use), ("RQN", nodes), ("DISK_TEMPLATE", self._template),
            ):  # fmt: skip
                self._say(f"{prefix}_{key}", str(value))
            return
        self._line(f"{title} instance spec is:")
        self._line(
            f"  MEM {one.memory}, DSK {one.disk}, CPU {one.vcpus},"
            f" using disk template '{self._template}'."
        )

    def _say_tiered(self, result: Result) -> None:
        runs = tally(result.filling.placed)
        if self._is_machine:
            self._say_statistics("TRL", result.filling)
            runs_text = " ".join(
                f"{one.memory},{one.disk},{one.vcpus},{one.spindle_use}={count}"
                for one, count in runs
            )
            self._say("TSPEC", runs_text)
            self._say_pools(result.filling)
            return
        self._line("Tiered allocation results:")
        if not runs:
            self._line("  - no instances allocated")
        for one, count in runs:
            self._line(
                f"  - {count:3d} instances of spec MEM {one.memory}, DSK {one.disk},"
                f" CPU {one.vcpus}"
            )
        self._say_outcome(result)

    def _say_pools(self, filling: Filling) -> None:
        """Used, still usable by what was placed, and out of reach."""
        before, after = self._initial, resources_of(filling)
        ratio = before.cpu_ratio

        def npu(cpus: int) -> str:
            return str(cpus / ratio)

        pools = (
            ("USED", before.used_cpus, before.used_memory, before.used_disk, before.used_spindles),
            (
                "POOL",
                after.used_cpus - before.used_cpus,
                after.used_memory - before.used_memory,
                after.used_disk - before.used_disk,
                after.used_spindles - before.used_spindles,
            ),
            (
                "UNAV",
                int(before.vcpus) - after.used_cpus,
                int(before.total_memory) - before.overhead - after.used_memory,
                int(before.total_disk) - after.used_disk,
                int(before.total_spindles) - after.used_spindles,
            ),
        )
        for name, cpus, memory, disk, spindles in pools:
            self._say(f"KM_{name}_CPU", str(cpus))
            self._say(f"KM_{name}_NPU", npu(cpus))
            self._say(f"KM_{name}_MEM", str(memory))
            self._say(f"KM_{name}_DSK", str(disk))
            self._say(f"KM_{name}_SPN", str(spindles))

    def _say_standard(self, result: Result) -> None:
        count = len(result.filling.placed)
        ranked = _ranked(result.failures)
        if self._is_machine:
            self._say_statistics("FIN", result.filling)
            total = result.filling
            usage = self._initial.instances / resources_of(total).instances if count else 1.0
            self._say("ALLOC_USAGE", show(usage))
            self._say("ALLOC_INSTANCES", str(count))
            self._say("ALLOC_FAIL_REASON", ranked[0][0].upper())
            for label, number_of in ranked:
                self._say(f"ALLOC_{label.upper()}_CNT", str(number_of))
            return
        self._line("Normal (fixed-size) allocation results:")
        self._line(f"  - {count:3d} instances allocated")
        self._say_outcome(result)

    def _say_outcome(self, result: Result) -> None:
        after = resources_of(result.filling)
        self._line(f"  - most likely failure reason: {_ranked(result.failures)[0][0]}")
        self._line(f"  - initial cluster score: {show(self._start.score())}")
        self._line(f"  -   final cluster score: {show(result.filling.score())}")
        for what, share in (
            ("memory", after.memory_share), ("  disk", after.disk_share),
            ("  vcpu", after.cpu_share),
        ):  # fmt: skip
            self._line(f"  - {what} usage efficiency: {show(share * 100, 2):>5}%")
        if self._exclusive:
            self._line(f"  - spindles usage efficiency: {show(after.spindle_share * 100, 2):>5}%")


def _no_failures() -> Failures:
    return {failure: 0 for failure in Failure if failure}


def _ranked(failures: Failures) -> list[tuple[str, int]]:
    """The most frequent first; in the order in which they are listed among equals."""
    counts = [(failure.label, failures[failure]) for failure in Failure if failure]
    return sorted([*counts, ("FailInternal", 0)], key=lambda each: -each[1])


__all__ = ["OPTIONS", "Resources", "main", "measure"]

if __name__ == "__main__":
    main()
