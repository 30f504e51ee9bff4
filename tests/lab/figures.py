"""Figures of a lab: how long it takes to add, move and copy what is mirrored, beside Ganeti's.

``deploy/lab figures`` prints them. They are of nodes without KVM that share two processors: what is
beside them was taken in nodes like these.
"""

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from deploy.uml import cluster
from deploy.uml.command import Trouble
from deploy.uml.lab import Lab
from deploy.uml.place import CHECKOUT, SHARED
from tests.lab.chaos.ear import Ears
from tests.lab.chaos.record import Record
from tests.lab.copying import copy_all, sending_by_dd
from tests.support.tiny_guest import kernel

KERNEL = "figures.kernel"
OPTIONS = f"--no-nics -B memory=64,vcpus=1 -H kvm:kernel_path={SHARED}/{KERNEL}"
REMOVE = "gnt-instance remove --force --shutdown-timeout 0"
SIZE = 512  # MiB, of what is copied
MANY = 20
VCPU_RATIO = 32  # nodes of one processor each take no more than nine by the usual policy
OTHERS = (0, 49, 99)  # mirrored devices beside one that is activated
PATIENCE_S = 300.0  # with one order; what takes longer is broken off, and the next one taken


class Heard(Record):
    """Remembers when each line was heard, beside what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[float, str]] = []

    def hear(self, line: str) -> None:
        self.lines.append((time.monotonic(), line))
        super().hear(line)

    def longest_gap_s(self, since: float) -> float:
        """Return how long at most nothing was heard."""
        times = [at for at, _ in self.lines if at >= since]
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)

    def start_after(self, since: float) -> float | None:
        """Return how long after a moment a guest said that it had begun."""
        starts = (at for at, line in self.lines if at >= since and line.split()[1] == "start")
        return next((at - since for at in starts), None)


class Took(NamedTuple):
    """What something took; the processors are those of all nodes, and tell more where others
    use them, too.
    """

    seconds: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.cpu_s:.1f} s of processors)"


class Figures:
    """Takes them on three nodes, of which the first is the master."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._master, self._one, self._other = lab.nodes()[:3]
        self._heard = Heard()

    def take(self, names: list[str]) -> None:
        every: dict[str, Callable[[], None]] = {
            "activation": self.activation, "adding": self.adding, "moving": self.moving,
            "copying": self.copying, "many": self.many, "exports": self.exports,
        }  # fmt: skip
        unknown = set(names) - every.keys()
        if unknown:
            raise Trouble(f"There is no figure {', '.join(unknown)}; there are {', '.join(every)}.")
        with Ears(self._lab.nodes(), self._heard):
            broken = [name for name in names or every if not _is_taken(name, every[name])]
        if broken:
            raise Trouble(
                f"Broken off: {', '.join(broken)}. Figures that were taken afterwards may be of a "
                "cluster that was busy with that still; “deploy/lab clean” ends it."
            )

    def activation(self) -> None:
        """Programs and seconds, with more and more devices on a node."""
        with self._mounted():
            self._bench("clear()")
            try:
                for others in OTHERS:
                    print(self._bench(f"main({others})"), end="", flush=True)
            finally:
                self._bench("clear()")

    def _bench(self, what: str) -> str:
        """Have a node measure what it does with mirrored disks; return what it printed."""
        # What an ssh has begun goes on without it.
        return self._one.run(
            "cd /mnt/checkout && GANTRY_TEST_GROUP=gantry PYTHONDONTWRITEBYTECODE=1 "
            f"timeout --signal=INT --kill-after=20 {PATIENCE_S:g} /opt/gantry/bin/python "
            "-c \"import sys; sys.path.append('/mnt/packages'); "
            f'from tests.bench.mirrors import clear, main; {what}"',
            timeout_s=PATIENCE_S + 30,
        )

    def adding(self) -> None:
        for template, theirs in (("plain", "16"), ("drbd", "29")):
            took: list[Took] = []
            for number in range(3):
                name = f"added{number}"
                took.append(self._orders(self._adding(name, template, 128, start=False)))
                self._orders(f"{REMOVE} {name}")
            _tell(f"add {template}, 128 MiB, not started", sorted(took)[1], f"{theirs} s")

    def moving(self) -> None:
        with self._guest("moved", 128):
            for _ in range(2):
                began = time.monotonic()
                took = self._orders("gnt-instance migrate --force moved")
                _tell("live migration, drbd, 128 MiB", took)
                _tell("  nothing heard of the guest", f"{self._heard.longest_gap_s(began):.1f} s")
            for _ in range(2):
                began = time.monotonic()
                took = self._orders("gnt-instance failover --force --shutdown-timeout 0 moved")
                _tell("failover, both nodes well", took)
            self._failover_from_the_dead()

    def _failover_from_the_dead(self) -> None:
        home = self._lab.node(self._of("moved", "pnode"))
        home.power_off()
        self._orders(f"gnt-node modify --offline=yes --force {home.name}")
        began = time.monotonic()
        took = self._orders("gnt-instance failover --force moved")
        _await(lambda: self._heard.start_after(began) is not None, "the guest to begin")
        _tell("failover from a dead node, the command", took, "20 s")
        _tell("  until the guest says so", f"{self._heard.start_after(began):.1f} s")
        self._lab.up(3, lambda _: None)
        self._orders(f"gnt-node modify --master-candidate=yes {home.name}")
        self._orders("gnt-instance activate-disks --wait-for-sync moved")

    def copying(self) -> None:
        """How fast a copy is made anew, beside dd over the same link to such a volume."""
        with self._guest("copied", SIZE):
            replaced = self._orders("gnt-instance replace-disks -s copied")
            home = self._lab.node(self._of("copied", "pnode"))
            copied = self._timed(lambda: copy_all(home, PATIENCE_S))
        with sending_by_dd(self._one, self._other, SIZE) as send:
            by_dd = self._timed(send)
        for what, took in (
            (f"dd over the same link, {SIZE} MiB", by_dd),
            (f"DRBD copies all, {SIZE} MiB", copied),
            (f"replace-disks -s, {SIZE} MiB", replaced),
        ):
            _tell(what, f"{_rate(took)}, {by_dd.seconds / took.seconds:.2f} of dd")

    def many(self) -> None:
        instances = [
            {
                "instance_name": f"many{number}", "disk_template": "drbd",
                "disks": [{"size": "8M"}], "nics": [], "start": False,
                "beparams": {"memory": "32M"},
            }
            for number in range(MANY)
        ]  # fmt: skip
        (self._lab.place.shared / "many.json").write_text(json.dumps(instances))
        self._orders(f"gnt-cluster modify --ipolicy-vcpu-ratio {VCPU_RATIO}")
        try:
            took = self._orders(f"gnt-instance batch-create {SHARED}/many.json")
            _tell(f"{MANY} drbd instances at once", took)
            _tell("  removed", self._orders(f"{REMOVE} --force-multiple 'many*'"))
        finally:
            self._orders("gnt-cluster modify --ipolicy-vcpu-ratio default")

    def exports(self) -> None:
        with self._guest("exported", SIZE):
            node = self._other.name
            took = self._orders(f"gnt-backup export -n {node} --shutdown-timeout 0 exported")
            _tell(f"export, {SIZE} MiB", _rate(took))
        line = f"gnt-backup import -t plain --src-node {node} -n {self._one.name} exported"
        took = self._orders(line)
        _tell(f"import, {SIZE} MiB", _rate(took))
        self._orders(f"{REMOVE} exported")
        self._orders("gnt-backup remove exported")

    @contextmanager
    def _guest(self, name: str, size: int) -> Iterator[None]:
        began = time.monotonic()
        self._orders(self._adding(name, "drbd", size, start=True))
        try:
            _await(lambda: self._heard.start_after(began) is not None, f"{name} to begin")
            yield
        finally:
            self._orders(f"{REMOVE} {name}")

    def _adding(self, name: str, template: str, size: int, *, start: bool) -> str:
        where = f"{self._one.name}:{self._other.name}" if template == "drbd" else self._one.name
        words = f"-t {template} -n {where} --disk 0:size={size}M {OPTIONS}"
        return f"gnt-instance add {words} {'' if start else '--no-start'} {name}"

    def _of(self, name: str, field: str) -> str:
        return self._master.run(f"gnt-instance list --no-headers -o {field} {name}").strip()

    def _orders(self, line: str) -> Took:
        """Have the master do something; return what it took."""
        return self._timed(lambda: self._master.run(line, timeout_s=PATIENCE_S))

    def _timed(self, work: Callable[[], object]) -> Took:
        began, before = time.monotonic(), self._cpu_s()
        work()
        return Took(time.monotonic() - began, self._cpu_s() - before)

    def _cpu_s(self) -> float:
        """Return how long all nodes have computed; each is a session of processes."""
        leaders = {node.pid for node in self._lab.nodes()}
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) in leaders:
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def _mounted(self) -> Iterator[None]:
        """Let a node see the checkout, and the packages of tests, which it does not have."""
        import pytest

        packages = str(pytest.__file__).rpartition("/pytest/")[0]
        mounted = {"/mnt/checkout": str(CHECKOUT), "/mnt/packages": packages}
        kernel()
        for there, here in mounted.items():
            self._one.run(f"mkdir -p {there} && mount -t hostfs -o ro,{here} lab {there}")
        try:
            yield
        finally:
            for there in mounted:
                self._one.run(f"umount {there}")


def show_figures(lab: Lab, names: list[str]) -> None:
    """Have a cluster in the lab, and print its figures: those named, or all."""
    cluster.form(lab.up(3, print), print)
    (lab.place.shared / KERNEL).write_bytes(kernel())
    Figures(lab).take(names)


def _is_taken(name: str, take: Callable[[], None]) -> bool:
    """Take one figure, or say why it is broken off; return whether it is there."""
    print(f"── {name}", flush=True)
    try:
        take()
    except Trouble as error:
        print(f"  broken off: {error}", flush=True)
        return False
    return True


def _rate(took: Took) -> str:
    return f"{took}, {SIZE / took.seconds:.0f} MiB/s"


def _tell(what: str, here: object, theirs: str = "") -> None:
    print(f"  {what:45} {here!s:>32}   {theirs and f'Ganeti {theirs}'}", flush=True)


def _await(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise Trouble(f"Waited {PATIENCE_S:g} s in vain for {what}.")
        time.sleep(0.05)
