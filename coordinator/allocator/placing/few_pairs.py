"""All pairs of a small cluster for one mirrored instance, one after the other, without NumPy.

Importing NumPy takes as long as scoring 40,000 pairs in a plain loop, so below some 200 nodes the
loop has the answer first. It is for clusters that are simple as well: every instance is mirrored
and there, no tags rule, no storage is exclusive, every node has some of everything. Then few terms
of the score differ between pairs, and whether every node can still be emptied is a comparison.

The sums are those of ``score`` and ``pair`` in the same order, so the scores are the same to the
last bit; the tests compare the two.
"""

from __future__ import annotations

from collections import Counter
from math import inf, sqrt

from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from coordinator.allocator.columns import InstanceColumns, NodeColumns

_UP, _OFFLINE = "running", "ADMIN_offline"


class Wanted:
    """The instance to place.

    Attributes:
        memory: taken from its primary node now; ``next_memory`` once it runs.
        needed: memory that its secondary node keeps free.
    """

    __slots__ = ("cpus", "disk", "memory", "needed", "next_memory", "spindles")

    def __init__(self, memory: int, vcpus: int, disk: int, spindles: int, status: str) -> None:
        self.next_memory, self.disk, self.spindles = memory, disk, spindles
        self.memory = memory if status == _UP else 0
        self.needed = 0 if status == _OFFLINE else memory
        self.cpus = 0 if status == _OFFLINE else vcpus


class Found:
    """What came of one group.

    Attributes:
        pair: node indices, primary first; None when nothing fits.
        score: of the scored nodes with the instance there.
        failures: pairs refused, by reason.
    """

    __slots__ = ("failures", "pair", "score", "successes")

    def __init__(
        self, pair: tuple[int, int] | None, score: float, successes: int, failures: Counter[Reason]
    ) -> None:
        self.pair, self.score, self.successes, self.failures = pair, score, successes, failures


class FewNodes:
    """The books of a few nodes; see ``books`` for what the columns mean.

    Attributes:
        promised: by primary, then secondary: memory the one keeps free for the other's failure.
        arriving: likewise, memory that would really be taken there now.
    """

    def __init__(
        self,
        nodes: NodeColumns,
        instances: InstanceColumns,
        cpu_ratio: Sequence[float],
        spindle_ratio: Sequence[float],
    ) -> None:
        """Open the books; the ratios are those of the groups."""
        size = len(nodes.names)
        self.group, self.offline = nodes.group, nodes.offline
        self.total_memory, self.total_disk = nodes.total_memory, nodes.total_disk
        self.total_cpus, self.disk = nodes.total_cpus, nodes.free_disk
        self.cpu_ratio = [cpu_ratio[group] for group in nodes.group]
        self.spindle_limit = [
            spindle_ratio[group] * float(count)
            for group, count in zip(nodes.group, nodes.spindles, strict=True)
        ]
        used, down = [0] * size, [0] * size
        self.cpus, self.spindles = list(nodes.own_cpus), [0] * size
        self.primaries, self.secondaries = [0] * size, [0] * size
        self.promised: list[dict[int, int]] = [{} for _ in range(size)]
        self.arriving: list[dict[int, int]] = [{} for _ in range(size)]
        for primary, secondary, memory, vcpus, use, status in zip(
            instances.primary, instances.secondary, instances.memory, instances.vcpus,
            instances.spindle_use, instances.status, strict=True,
        ):  # fmt: skip
            promised, arriving = self.promised[primary], self.arriving[primary]
            here = memory if status == _UP else 0
            used[primary] += here
            down[primary] += memory - here
            owed = 0 if status == _OFFLINE else memory
            promised[secondary] = promised.get(secondary, 0) + owed
            arriving[secondary] = arriving.get(secondary, 0) + here
            self.cpus[primary] += 0 if status == _OFFLINE else vcpus
            self.spindles[primary] += use
            self.spindles[secondary] += use
            self.primaries[primary] += 1
            self.secondaries[secondary] += 1
        self.memory = [
            min(int(total) - own - taken, free)
            for total, own, taken, free in zip(
                nodes.total_memory, nodes.own_memory, used, nodes.free_memory, strict=True
            )
        ]
        self.next_memory = [f - d for f, d in zip(nodes.free_memory, down, strict=True)]
        self.reserved = [0] * size
        for held in self.promised:
            for secondary, amount in held.items():
                self.reserved[secondary] = max(self.reserved[secondary], amount)
        self.fails_n1 = [f < r for f, r in zip(nodes.free_memory, self.reserved, strict=True)]

    def primary_code(self, node: int, new: Wanted, *, force: bool) -> Reason:
        """Why a node cannot run the instance; with ``force`` soft limits do not count."""
        memory = self.memory[node] - new.memory
        if memory <= 0:
            return Reason.MEMORY
        if self.disk[node] - new.disk <= 0:
            return Reason.DISK
        if force:
            return Reason.NONE
        if self.spindles[node] + new.spindles > self.spindle_limit[node]:
            return Reason.SPINDLES
        if memory <= self.reserved[node] and not self.fails_n1[node]:
            return Reason.MEMORY_N1
        ratio = self.cpu_ratio[node]
        if ratio >= 0 and ratio < (self.cpus[node] + new.cpus) / self.total_cpus[node]:
            return Reason.CPU
        return Reason.MEMORY if self.next_memory[node] - new.next_memory <= 0 else Reason.NONE

    def secondary_code(self, node: int, new: Wanted, promised: int) -> Reason:
        """Why a node cannot keep the copy; it ``promised`` so much to the primary already."""
        if self.disk[node] - new.disk <= 0:
            return Reason.DISK
        if self.spindles[node] + new.spindles > self.spindle_limit[node]:
            return Reason.SPINDLES
        memory = self.memory[node]
        if new.needed >= memory:
            return Reason.MEMORY
        reserved = max(self.reserved[node], promised + new.needed)
        if memory <= reserved and not self.fails_n1[node]:
            return Reason.MEMORY_N1
        return Reason.MEMORY if new.needed >= self.next_memory[node] else Reason.NONE

    def is_evacuable(self, scored: Iterable[int]) -> bool:
        """Whether each of the nodes could be emptied as things stand."""
        return not any(
            self.memory[secondary] <= amount
            or self.disk[secondary] <= 0
            or (not self.offline[primary] and self.disk[primary] <= 0)
            for primary in scored
            for secondary, amount in self.arriving[primary].items()
        )

    def most_arriving(self, scored: Iterable[int]) -> list[int]:
        """Per node: most memory that the failure of one of ``scored`` brings."""
        most = [0] * len(self.memory)
        for primary in scored:
            for secondary, amount in self.arriving[primary].items():
                most[secondary] = max(most[secondary], amount)
        return most


class _Spread:
    """The spread of one figure over the online nodes: its sum and variance."""

    __slots__ = ("n", "sum", "variance")

    def __init__(self, figures: Iterable[float]) -> None:
        values = list(figures)
        self.n = float(len(values))
        self.sum = _added(values)
        mean = self.sum / self.n
        self.variance = _added([(value - mean) * (value - mean) for value in values]) / self.n

    def replaced(self, before: float, after: float) -> tuple[float, float]:
        """Sum and variance with one figure changed."""
        shift = after - before
        growth = after * after - before * before
        change = (self.n * growth - (2 * self.sum) * shift) - shift * shift
        variance = self.variance + change / (self.n * self.n)
        return self.sum + shift, variance if variance > 0 else 0.0

    def root(self, before: float, after: float) -> float:
        return sqrt(self.replaced(before, after)[1])

    def steps(self, before: float, after: float) -> tuple[float, float, float]:
        """What of a second change does not depend on the first; for ``roots``."""
        shift = after - before
        return self.n * (after * after - before * before), shift, shift * shift

    def roots(
        self, first: tuple[float, float], steps: Iterable[tuple[float, float, float]]
    ) -> list[float]:
        """The spreads after each of several second changes."""
        twice, variance, squared = 2 * first[0], first[1], self.n * self.n
        return [
            sqrt(x) if (x := variance + ((growth - twice * shift) - square) / squared) > 0 else 0.0
            for growth, shift, square in steps
        ]


def _added(values: Iterable[float]) -> float:
    """Strictly one after the other; ``sum`` compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


class FewPairs:
    """The pairs of some candidates, and what they would do to the score of some nodes."""

    def __init__(
        self,
        books: FewNodes,
        scored: Sequence[int],
        candidates: Sequence[int],
        new: Wanted,
        forbidden: Reason,
        *,
        force: bool = False,
    ) -> None:
        """Look at each candidate by itself.

        Args:
            books: of all nodes.
            scored: nodes whose score counts, rising; no total of theirs may be 0.
            candidates: some of them that are online, rising.
            new: the instance.
            forbidden: why the group's policy does not allow it, if so.
            force: whether soft limits of the primary do not count.
        """
        self._books, self._scored, self._nodes, self._new = books, scored, candidates, new
        self._first = {
            node: forbidden or books.primary_code(node, new, force=force) for node in candidates
        }
        self._second = {node: books.secondary_code(node, new, 0) for node in candidates}
        self._primaries = [node for node, code in self._first.items() if not code]
        self._secondaries = [node for node, code in self._second.items() if not code]
        # Pairs that have instances in common already, where the secondary promised something.
        among = set(candidates)
        self._special = {
            primary: {
                secondary: books.secondary_code(secondary, new, held)
                for secondary, held in books.promised[primary].items()
                if secondary in among
            }
            for primary in self._primaries
        }

    def find(self, *, redundant: bool) -> Found:
        """The best pair; with ``redundant``, of those that leave every node evacuable."""
        failures, size = self._failures(), len(self._nodes)
        left = size * (size - 1) - failures.total()
        if redundant and not self._books.is_evacuable(self._scored):
            failures[Reason.REDUNDANCY] += left
            return Found(None, inf, 0, +failures)
        best, pair = inf, None
        most = self._books.most_arriving(self._scored) if redundant else None
        for primary, scores in self._rows() if left else ():
            if most is not None:
                failures[Reason.REDUNDANCY] += self._drop_unsafe(primary, scores, most[primary])
            lowest = min(scores, default=inf)
            if lowest <= best and lowest < inf:
                last = len(scores) - 1 - scores[::-1].index(lowest)
                best, pair = lowest, (primary, self._secondaries[last])
        return Found(pair, best, size * (size - 1) - failures.total(), +failures)

    def _failures(self) -> Counter[Reason]:
        failures: Counter[Reason] = Counter()
        for code in self._first.values():
            failures[code] += len(self._nodes) - 1
        count = len(self._primaries)
        for node, code in self._second.items():
            failures[code] += count - (not self._first[node])
        for codes in self._special.values():
            for node, code in codes.items():
                failures[self._second[node]] -= 1
                failures[code] += 1
        failures[Reason.NONE] = 0
        return +failures

    def _drop_unsafe(self, primary: int, scores: list[float], arriving: int) -> int:
        """Leave out pairs after which a node could not be emptied.

        Returns how many are better than the best that stays, all if none does: those that hail
        tries in vain.
        """
        books, new = self._books, self._new
        memory, used, held = books.memory, new.memory, books.arriving[primary]
        is_lost = memory[primary] - used <= arriving
        unsafe = [
            at
            for at, node in enumerate(self._secondaries)
            if scores[at] < inf and (is_lost or memory[node] <= used + held.get(node, 0))
        ]
        tried = [(scores[at], -at) for at in unsafe]
        for at in unsafe:
            scores[at] = inf
        lowest = min(scores, default=inf)
        if lowest == inf:
            return len(tried)
        stays = (lowest, 1 + scores[::-1].index(lowest) - len(scores))
        return sum(one < stays for one in tried)

    def _rows(self) -> Iterable[tuple[int, list[float]]]:
        """Yield each primary with the scores of its secondaries; infinite if it cannot be."""
        scores = _Scores(self._books, self._scored, self._new)
        usual = [scores.secondary(node, 0) for node in self._secondaries]
        columns = list(zip(*usual, strict=True))
        position = {node: at for at, node in enumerate(self._secondaries)}
        for node in self._primaries:
            scores.put_primary(node)
            row = scores.with_secondaries(columns) if columns else []
            if node in position:
                row[position[node]] = inf
            for other, code in self._special[node].items():
                if other not in position:
                    continue
                own = scores.secondary(other, self._books.promised[node][other])
                at = position[other]
                row[at] = inf if code else scores.with_secondaries([(part,) for part in own])[0]
            yield node, row


class _Scores:
    """The scores of pairs, a primary at a time."""

    def __init__(self, books: FewNodes, scored: Sequence[int], new: Wanted) -> None:
        self._books, self._new = books, new
        online = [node for node in scored if not books.offline[node]]
        away = [node for node in scored if books.offline[node]]
        runs, copies, total = books.primaries, books.secondaries, books.total_memory
        self._memory = _Spread(books.memory[n] / total[n] for n in online)
        self._next_memory = _Spread(books.next_memory[n] / total[n] for n in online)
        self._reserve = _Spread(books.reserved[n] / total[n] for n in online)
        self._disk = _Spread(books.disk[n] / books.total_disk[n] for n in online)
        self._cpus = _Spread(books.cpus[n] / books.total_cpus[n] for n in online)
        self._load = _Spread(float(runs[n]) for n in online)
        self._disk_load = _Spread(float(runs[n] + copies[n]) for n in online)
        self._spindles = _Spread(books.spindles[n] / books.spindle_limit[n] for n in online)
        failing = (n for n in online if books.fails_n1[n])
        self._failing = _added(float(runs[n] + copies[n]) for n in failing)
        self._stranded = 4 * _added(float(runs[n] + copies[n]) for n in away)
        self._stranded_primaries = 16 * _added(float(runs[n]) for n in away)
        self._owed = _added(books.reserved[n] / total[n] for n in online)

    def secondary(self, node: int, promised: int) -> tuple[Any, ...]:
        """What a secondary brings to each term that depends on both nodes."""
        books, new, total = self._books, self._new, self._books.total_memory[node]
        here = books.primaries[node] + books.secondaries[node]
        keeps = max(books.reserved[node], promised + new.needed)
        was, will = books.reserved[node] / total, keeps / total
        fails = (books.memory[node] <= keeps) * (here + 1) - books.fails_n1[node] * here
        return (
            self._disk.steps(*self._disk_change(node)),
            self._reserve.steps(was, will),
            self._disk_load.steps(float(here), float(here + 1)),
            self._spindles.steps(*self._spindle_change(node)),
            fails,
            will - was,
        )

    def put_primary(self, node: int) -> None:
        """Turn to another primary."""
        books, new, total = self._books, self._new, self._books.total_memory[node]
        runs, of_all = books.primaries[node], books.total_cpus[node]
        here, left = runs + books.secondaries[node], books.memory[node] - new.memory
        soon = books.next_memory[node]
        self._fails = self._failing + (
            (left <= books.reserved[node]) * (here + 1) - books.fails_n1[node] * here
        )
        self._with_disk = self._disk.replaced(*self._disk_change(node))
        self._with_disk_load = self._disk_load.replaced(float(here), float(here + 1))
        self._with_spindles = self._spindles.replaced(*self._spindle_change(node))
        self._of_memory = self._memory.root(books.memory[node] / total, left / total)
        self._of_next = self._next_memory.root(soon / total, (soon - new.next_memory) / total)
        self._of_load = self._load.root(float(runs), float(runs + 1))
        cpus = books.cpus[node]
        self._of_cpus = self._cpus.root(cpus / of_all, (cpus + new.cpus) / of_all)

    def with_secondaries(self, columns: Sequence[Sequence[Any]]) -> list[float]:
        """The scores, given columns of what secondaries bring."""
        steps_of_disk, steps_of_reserve, steps_of_load, steps_of_spindles, fail, owe = columns
        reserve = (self._reserve.sum, self._reserve.variance)
        start, soon = 0.5 * self._of_memory, 0.5 * self._of_next
        fails, owed, load, cpus = self._fails, self._owed, self._of_load, 0.5 * self._of_cpus
        stranded, primaries = self._stranded, self._stranded_primaries
        # The terms in hail's order, those left out being 0; see ``score.Term``.
        return [
            start + 0.5 * disk + (fails + f) + kept + stranded + primaries + cpus + load + load
            + disk_load + load + 0.5 * spindles + soon + 0.5 * disk + cpus + 0.5 * spindles
            + 0.25 * (owed + o)
            for disk, kept, disk_load, spindles, f, o in zip(
                self._disk.roots(self._with_disk, steps_of_disk),
                self._reserve.roots(reserve, steps_of_reserve),
                self._disk_load.roots(self._with_disk_load, steps_of_load),
                self._spindles.roots(self._with_spindles, steps_of_spindles),
                fail,
                owe,
                strict=True,
            )
        ]  # fmt: skip

    def _disk_change(self, node: int) -> tuple[float, float]:
        """The share of free disk, before and with the instance."""
        free, total = self._books.disk[node], self._books.total_disk[node]
        return free / total, (free - self._new.disk) / total

    def _spindle_change(self, node: int) -> tuple[float, float]:
        used, limit = self._books.spindles[node], self._books.spindle_limit[node]
        return used / limit, (used + self._new.spindles) / limit
