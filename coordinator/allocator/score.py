"""How well a cluster is balanced: hail's score, lower is better.

Twenty terms. Most are the spread (population standard deviation) of one figure over the
online nodes, the others sums of things that should not be. Floats are combined in hail's
order throughout, so that equal situations get equal scores here exactly when they do there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from coordinator.allocator.accounts import Accounts
from coordinator.allocator.arrays import Bools, Floats, Ints, running_sum


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


class Kind(Enum):
    SPREAD = "spread"  # over online nodes
    SUM = "sum"
    CROWDING = "crowding"  # a count that belongs to no node


WEIGHTS = (0.5, 0.5, 1, 1, 4, 16, 0.5, 1, 1, 1, 1, 2, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.25)


def kind_of(term: Term) -> Kind:
    if term is Term.LOCATION_EXCLUSION_SCORE:
        return Kind.CROWDING
    return Kind.SPREAD if term.name.endswith(("_CV", "_CV_FORTH")) else Kind.SUM


SPREADS = tuple(term for term in Term if kind_of(term) is Kind.SPREAD)


def figures(nodes: Accounts) -> Floats:
    """What each node contributes to each term: shape (20, nodes).

    Only an offline node has a part in the two terms about offline nodes, and it has none
    in the other sums. A figure may be NaN or infinite where a node has none of something.
    """
    online = ~nodes.offline
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = (
            nodes.memory / nodes.total_memory,
            _free_storage(nodes, nodes.disk, nodes.free_spindles),
            (nodes.fails_n1 & online) * (nodes.primaries + nodes.secondaries),
            nodes.reserved / nodes.total_memory,
            nodes.offline * (nodes.primaries + nodes.secondaries),
            nodes.offline * nodes.primaries,
            nodes.cpus / nodes.total_cpus / nodes.cpu_speed,
            nodes.load_cpu,
            nodes.load_memory,
            nodes.load_disk,
            nodes.load_network,
            online * nodes.conflicts,
            nodes.spindles / nodes.spindle_limit,
            nodes.next_memory / nodes.total_memory,
            _free_storage(nodes, nodes.next_disk, nodes.next_free_spindles),
            nodes.next_cpus / nodes.total_cpus / nodes.cpu_speed,
            nodes.next_spindles / nodes.spindle_limit,
            online * nodes.location,
            np.zeros(len(online)),
            np.where(online, nodes.reserved / nodes.total_memory, 0),
        )
    return np.stack(rows).astype(np.float64)


def _free_storage(nodes: Accounts, disk: Ints, spindles: Ints) -> Floats:
    share = _free_share(disk, nodes.total_disk)
    if not nodes.exclusive.any():
        return share
    return np.where(nodes.exclusive, _free_share(spindles, nodes.total_spindles), share)


def _free_share(free: Ints, total: Floats) -> Floats:
    share: Floats = np.where(total == 0, 1.0, free / total)
    return share


def merge_crowds(crowds: Iterable[Mapping[tuple[str, str], int]]) -> Counter[tuple[str, str]]:
    """Primaries counted by (location tag, exclusion tag) over several nodes."""
    merged: Counter[tuple[str, str]] = Counter()
    for crowd in crowds:
        merged.update(crowd)
    return merged


@dataclass(frozen=True, slots=True)
class Changes:
    """What candidates would change: so many nodes each, mostly one.

    Attributes:
        nodes: positions of the changed nodes among those scored, shape (changed, candidates).
        figures: those nodes' figures afterwards, shape (20, changed, candidates).
        crowding: added to the count of crowded locations, per candidate.
    """

    nodes: Ints
    figures: Floats
    crowding: Ints

    def at(self, candidates: Ints) -> "Changes":
        return Changes(
            self.nodes[:, candidates], self.figures[:, :, candidates], self.crowding[candidates]
        )


class Standing:
    """The nodes that are scored, as they stand, and what single changes would make of them.

    Attributes:
        online: how many of the nodes are.
        before: figures as they stand, shape (20, nodes).
        sums, variances: per term; a variance only for spreads.
        crowding: the count of crowded locations.
    """

    def __init__(self, nodes: Accounts, crowding: int = 0) -> None:
        is_online: Bools = ~nodes.offline
        self.online = int(np.count_nonzero(is_online))
        self.before = figures(nodes)
        self.crowding = crowding
        self._column = np.where(is_online, np.cumsum(is_online) - 1, -1)
        self._seen = self.before[:, is_online]
        self.sums = running_sum(self.before)
        self.variances = np.zeros(len(Term))
        self._means = np.zeros(len(Term))
        if self.online:
            spreads = list(SPREADS)
            seen = self._seen[spreads]
            self.sums[spreads] = running_sum(seen)
            self._means[spreads] = self.sums[spreads] / self.online
            with np.errstate(invalid="ignore"):
                deviations = seen - self._means[spreads, None]
                self.variances[spreads] = running_sum(deviations * deviations) / self.online

    def score(self) -> float:
        """The score as it stands; NaN when a node has none of something."""
        total = 0.0
        if self.online:
            for term in Term:
                total += WEIGHTS[term] * self._value(term)
        return float(total)

    def _value(self, term: Term) -> float:
        match kind_of(term):
            case Kind.SPREAD:
                return float(np.sqrt(self.variances[term]))
            case Kind.SUM:
                return float(self.sums[term])
            case Kind.CROWDING:
                return float(self.crowding)

    def estimates(self, changes: Changes) -> Floats:
        """Scores after each change, correct to about a millionth; much cheaper than ``scores``."""
        total = np.zeros(len(changes.crowding))
        if not self.online:
            return total
        is_online = self._column[changes.nodes] >= 0
        for term in Term:
            old = self.before[term, changes.nodes]
            new = changes.figures[term]
            if kind_of(term) is Kind.SPREAD:
                with np.errstate(invalid="ignore"):
                    was, becomes = old - self._means[term], new - self._means[term]
                    shift = np.where(is_online, becomes - was, 0).sum(axis=0) / self.online
                    growth = np.where(is_online, becomes * becomes - was * was, 0).sum(axis=0)
                    variance = self.variances[term] + growth / self.online - shift * shift
                    total += WEIGHTS[term] * np.sqrt(np.maximum(variance, 0))
            elif kind_of(term) is Kind.SUM:
                total += WEIGHTS[term] * (self.sums[term] + (new - old).sum(axis=0))
            else:
                total += WEIGHTS[term] * (self.crowding + changes.crowding)
        return total

    def scores(self, changes: Changes) -> Floats:
        """Scores after each change, bit for bit as if computed afresh."""
        total = np.zeros(len(changes.crowding))
        if not self.online:
            return total
        spreads: dict[bytes, Floats] = {}  # several terms are often made of the same figures
        for term in Term:
            if kind_of(term) is Kind.SPREAD:
                content = self._seen[term].tobytes() + changes.figures[term].tobytes()
                if content not in spreads:
                    spreads[content] = self._afresh(term, changes, self._spread)
                value = spreads[content]
            elif kind_of(term) is Kind.SUM:
                growth = changes.figures[term] - self.before[term, changes.nodes]
                # Exact although not summed afresh: these are whole numbers, but for one.
                value = self.sums[term] + growth.sum(axis=0)
                if term is Term.RESERVED_MEM_RTOTAL and growth.any():
                    value = self._afresh(term, changes, self._sum)
            else:
                value = (self.crowding + changes.crowding).astype(np.float64)
            total = total + WEIGHTS[term] * value
        return total

    def _afresh(
        self, term: Term, changes: Changes, value: Callable[[Floats], Floats], block: int = 64
    ) -> Floats:
        """A value made of the figures of all online nodes, row by row of a table of them."""
        values = np.repeat(value(self._seen[[term]]), len(changes.crowding))
        columns, after = self._column[changes.nodes], changes.figures[term]
        differs = (columns >= 0) & (self._seen[term, columns] != after)
        moved = np.flatnonzero(differs.any(axis=0))
        for start in range(0, len(moved), block):
            part = moved[start : start + block]
            table = np.tile(self._seen[term], (len(part), 1))
            for column, figure in zip(columns[:, part], after[:, part], strict=True):
                rows = np.flatnonzero(column >= 0)
                table[rows, column[rows]] = figure[rows]
            values[part] = value(table)
        return values

    def _sum(self, table: Floats) -> Floats:
        return running_sum(table)

    def _spread(self, table: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            table = table - (running_sum(table) / self.online)[:, None]
            table *= table
            spread: Floats = np.sqrt(running_sum(table) / self.online)
        return spread
