"""How many more instances fit: equal ones placed one after the other, until none fits.

Each goes where Debian's hspace puts it: a mirrored one on the pair of nodes of the lowest score,
scored by updated sums, another on the node of the lowest score, summed afresh; the last of
equals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from common.model.group import AllocationPolicy
from common.model.policy import InstancePolicy, Spec
from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.books import Books, Opening, demands_of
from coordinator.allocator.inventory import NOWHERE, Instance
from coordinator.allocator.score import WEIGHTS, Kind, Term, kind_of
from coordinator.allocator.shift import Failure, add_primary, add_secondary
from coordinator.allocator.terms import Changed, Score, figures

Failures = dict[Failure, int]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One instance tried everywhere: its nodes, none if it fits nowhere, and what failed."""

    nodes: tuple[int, ...]
    failures: Failures


class Filling:
    """Books of a cluster that is being filled.

    Attributes:
        placed: instances placed so far, in order.
    """

    def __init__(self, opening: Opening, closed: frozenset[int]) -> None:
        """Begin; ``closed`` are groups that take nothing."""
        self.opening = opening
        inventory = opening.inventory
        self.books = opening.books.copy()
        self.promised = opening.promised.copy()
        self.placed: list[Instance] = []
        self._groups = np.array([node.group for node in inventory.nodes], dtype=np.int64)
        is_open = [
            not node.offline
            and node.group not in closed
            and inventory.groups[node.group].alloc_policy is not AllocationPolicy.UNALLOCABLE
            for node in inventory.nodes
        ]
        self._open = np.flatnonzero(is_open)
        self._shared = opening.places @ opening.places.T
        self._crowding = int(_crowding(opening))

    def copy(self) -> "Filling":
        """The same state, to go on from separately."""
        other = object.__new__(Filling)
        other.__dict__.update(self.__dict__)
        other.books, other.promised = self.books.copy(), self.promised.copy()
        other.placed = list(self.placed)
        return other

    def has_candidates(self, template: str) -> bool:
        """Whether there are nodes to try at all."""
        if template != "drbd":
            return len(self._open) > 0
        _, sizes = np.unique(self._groups[self._open], return_counts=True)
        return bool((sizes > 1).any())

    def score(self) -> float:
        """Of the whole cluster, as it stands."""
        return Score(self.books, self._crowding).value

    def attempt(self, wanted: Instance) -> Attempt:
        """Find the best place; nothing changes."""
        return self._pair(wanted) if wanted.template == "drbd" else self._single(wanted)

    def singles_from_best(self, wanted: Instance) -> Iterator[int]:
        """Yield the nodes that can take an unmirrored instance, the best first."""
        codes, scores = self._singles(wanted)
        fits = np.flatnonzero(codes == 0)[::-1]
        for at in fits[np.argsort(scores[fits], kind="stable")].tolist():
            yield int(self._open[at])

    def put(self, wanted: Instance, nodes: tuple[int, ...]) -> None:
        """Place an instance for good, under the next name."""
        demands, none = demands_of([wanted]), np.zeros(1, dtype=np.int64)
        first, free = np.array(nodes[:1]), np.zeros(1, dtype=np.bool_)
        location = np.zeros(1, dtype=np.int64)
        if len(nodes) > 1:
            location += self._shared[nodes[0], nodes[1]]
        _, after = add_primary(
            self.books.at(first), demands, clashes=none, location=location, force=free
        )
        self.books.put(nodes[0], after)
        if len(nodes) > 1:
            second = np.array(nodes[1:])
            promised = self.promised[second, first]
            _, after = add_secondary(
                self.books.at(second), demands, promised=promised, force=free
            )
            self.books.put(nodes[1], after)
            self.promised[nodes[1], nodes[0]] += int(demands.needed[0])
        self.placed.append(
            replace(
                wanted,
                name=f"new-{len(self.placed)}",
                primary=nodes[0],
                secondary=nodes[1] if len(nodes) > 1 else NOWHERE,
            )
        )

    def _policies(self, wanted: Instance) -> Ints:
        """Per candidate, why its group's policy forbids the instance."""
        inventory = self.opening.inventory
        codes = {
            int(group): policy_failure(inventory.groups[int(group)].policy, wanted)
            for group in np.unique(self._groups[self._open])
        }
        nodes = self._groups[self._open].tolist()
        return np.array([codes[group] for group in nodes], dtype=np.int64)

    def _as_primaries(self, wanted: Instance) -> tuple[Ints, Books]:
        none = np.zeros(len(self._open), dtype=np.int64)
        forbidden = self._policies(wanted)
        if forbidden.all():
            return forbidden, self.books.at(self._open)
        codes, after = add_primary(
            self.books.at(self._open),
            demands_of([wanted]),
            clashes=none,
            location=none,
            force=np.zeros(1, dtype=np.bool_),
        )
        return np.where(forbidden > 0, forbidden, codes), after

    def _singles(self, wanted: Instance) -> tuple[Ints, Floats]:
        codes, after = self._as_primaries(wanted)
        if codes.all():
            return codes, np.zeros(len(codes))
        score = Score(self.books, self._crowding)
        nodes = self._open[None, :]
        none = np.zeros(len(self._open), dtype=np.int64)
        return codes, score.exact(Changed(nodes, figures(after)[:, None, :], none))

    def _single(self, wanted: Instance) -> Attempt:
        codes, scores = self._singles(wanted)
        failures = _counted(codes)
        fits = np.flatnonzero(codes == 0)[::-1]
        if not len(fits):
            return Attempt((), failures)
        best = fits[np.argsort(scores[fits], kind="stable")[0]]
        return Attempt((int(self._open[best]),), failures)

    def _pair(self, wanted: Instance) -> Attempt:
        some, demands = self._open, demands_of([wanted])
        first, as_primary = self._as_primaries(wanted)
        groups = self._groups[some]
        partners = (groups[:, None] == groups) & ~np.eye(len(some), dtype=np.bool_)
        if first.all():
            return Attempt((), _counted(np.repeat(first, partners.sum(axis=1))))
        books, none = self.books.at(some), np.zeros(len(some), dtype=np.int64)
        strict = np.zeros(1, dtype=np.bool_)
        second, as_secondary = add_secondary(books, demands, promised=none, force=strict)
        promised = self.promised[np.ix_(some, some)].T  # row by primary
        reserved = np.maximum(books.reserved, promised + demands.needed)
        n1 = (second == 0) & (books.memory <= reserved) & ~books.fails_n1
        codes = np.where(n1, np.int64(Failure.MEM), second[None, :])
        # Where nothing is promised yet the order of the checks is settled; elsewhere the rare
        # node that also fails a later check is counted by the first.
        for row, column in np.argwhere((promised > 0) & (codes > 0)).tolist():
            code, _ = add_secondary(
                books.at(np.array([column])),
                demands,
                promised=promised[row, column : column + 1],
                force=strict,
            )
            codes[row, column] = code[0]
        codes = np.where(first[:, None] > 0, first[:, None], codes)
        failures = _counted(codes[partners])
        possible = partners & (codes == 0)
        if not possible.any():
            return Attempt((), failures)
        scores = self._pair_scores(as_primary, as_secondary, reserved, books)
        scores = np.where(possible, scores, np.inf)
        flat = int(np.argmin(scores[::-1, ::-1]))
        row, column = divmod(flat, len(some))
        last = len(some) - 1
        return Attempt((int(some[last - row]), int(some[last - column])), failures)

    def _pair_scores(
        self, as_primary: Books, as_secondary: Books, reserved: Ints, books: Books
    ) -> Floats:
        """Row by primary, column by secondary; rounded as by updating sums one node at a time."""
        score, some = Score(self.books, self._crowding), self._open
        before = score.before[:, some]
        one, two = figures(as_primary), figures(as_secondary)
        n = float(score.count)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = reserved / books.total_memory
        failing = (books.memory <= reserved) * (books.primaries + books.secondaries + 1.0)
        special = {
            Term.N1_CNT: failing,
            Term.RESERVED_MEM_CV: share,
            Term.RESERVED_MEM_RTOTAL: share,
        }
        size = len(some)
        known: dict[bytes, Floats] = {}
        total = np.zeros((size, size))
        for term in Term:
            kind = kind_of(term)
            after = special.get(term, two[term])
            if kind is Kind.CROWDING:
                value: Floats = np.full((size, 1), float(score.crowding))
            elif kind is Kind.SUM:
                value = score.sums[term] + (one[term] - before[term])[:, None]
                value = value + (after - before[term])
                if term is Term.LOCATION_SCORE:
                    value = value + self._shared[np.ix_(some, some)]
            else:
                key = b"".join(
                    part.tobytes() for part in (score.before[term], one[term], after)
                )
                if key not in known:
                    known[key] = _replaced_twice(score, term, before[term], one[term], after, n)
                value = known[key]
            total += WEIGHTS[term] * value
        return total


def _replaced_twice(
    score: Score, term: Term, before: Floats, one: Floats, two: Floats, n: float
) -> Floats:
    """A spread after the primary's figure changed, then the secondary's."""

    def replaced(
        sums: Floats, variances: Floats, old: Floats, new: Floats
    ) -> tuple[Floats, Floats]:
        shift = new - old
        growth = new * new - old * old
        change = (n * growth - (2 * sums) * shift) - shift * shift
        return sums + shift, np.fmax(0, variances + change / (n * n))

    with np.errstate(invalid="ignore", over="ignore"):
        sums, variances = replaced(
            score.sums[term], score.variances[term], before[:, None], one[:, None]
        )
        if two.ndim == 1 and np.array_equal(two, before):
            # Nothing is added, exactly: the spread is the primary's.
            return np.sqrt(variances)
        _, variances = replaced(sums, variances, before, two)
        spread: Floats = np.sqrt(variances)
    return spread


def _counted(codes: Ints) -> Failures:
    counts = np.bincount(codes.ravel(), minlength=len(Failure))
    return {failure: int(counts[failure]) for failure in Failure if failure}


def _crowding(opening: Opening) -> int:
    real = (opening.demands.count > 0) & ~opening.books.offline[opening.primary]
    crowds = opening.places[opening.primary[real]].T @ opening.tagged[real]
    return int(crowds.sum()) - int(np.count_nonzero(crowds))


def policy_failure(policy: InstancePolicy, wanted: Instance) -> Failure:
    """Why a policy forbids an instance; the reason of the first alternative, if none fits."""
    failure = Failure.NONE
    for bounds in reversed(policy.minmax):
        failure = _outside(bounds.min, wanted, -1) or _outside(bounds.max, wanted, +1)
        if not failure:
            break
    if failure:
        return failure
    return Failure.NONE if wanted.template in policy.disk_templates else Failure.DISK


def _outside(bound: Spec, wanted: Instance, sign: int) -> Failure:
    def beyond(value: int, limit: int) -> bool:
        return sign * (value - limit) > 0

    if beyond(wanted.memory, bound.memory_size):
        return Failure.MEM
    if any(beyond(size, bound.disk_size) for size in wanted.disks):
        return Failure.DISK
    if beyond(wanted.vcpus, bound.cpu_count):
        return Failure.CPU
    if beyond(wanted.spindle_use, bound.spindle_use):
        return Failure.SPINDLES
    if wanted.template != "diskless" and beyond(len(wanted.disks), bound.disk_count):
        return Failure.DISK_COUNT
    return Failure.NONE


@dataclass(frozen=True, slots=True)
class Result:
    """What came of filling: the state reached, and the last attempt's failures."""

    filling: Filling
    failures: Failures


def fill(start: Filling, wanted: Instance, limit: int | None) -> Result:
    """Place equal instances until one fits nowhere, or so many are placed."""
    filling, left = start.copy(), limit
    while True:
        found = filling.attempt(wanted)
        if not found.nodes or left == 0:
            return Result(filling, found.failures)
        filling.put(wanted, found.nodes)
        left = None if left is None else left - 1


def tiered(start: Filling, wanted: Instance, limit: int | None) -> Result:
    """Fill; then shrink the instance by what stood most in the way, and go on.

    Where shrinking step by step by the most frequent failure places nothing more, the latest
    size is shrunk by one failure only until it fits, the most frequent first.
    """
    tried: list[tuple[Instance, Result, int | None]] = []
    filling, left = start, limit
    smaller: Instance | None = wanted
    while True:
        while smaller is not None:
            result = fill(filling, smaller, left)
            placed = len(result.filling.placed)
            if left is not None and left <= placed:
                return result
            left = None if left is None else left - placed
            tried.append((smaller, result, left))
            filling = result.filling
            smaller = _shrunk(smaller, _ranked(result.failures)[-1])
        while tried and smaller is None:
            size, result, left = tried.pop()
            filling = result.filling
            smaller = _first_fitting(result, size)
            placed = len(filling.placed)
            if smaller is None and (not tried or placed > len(tried[-1][1].filling.placed)):
                return result
        tried.clear()


def _ranked(failures: Failures) -> list[Failure]:
    """The most frequent last, and last of the equals the last."""
    return sorted(failures, key=lambda failure: failures[failure])


def _first_fitting(result: Result, size: Instance) -> Instance | None:
    ways = (
        _shrunk_enough(result.filling, size, each) for each in reversed(_ranked(result.failures))
    )
    return next((way for way in ways if way is not None), None)


def _shrunk_enough(filling: Filling, wanted: Instance, failure: Failure) -> Instance | None:
    """The instance so small that it fits, shrunk by one thing only."""
    smaller: Instance | None = wanted
    while smaller is not None:
        found = filling.attempt(smaller)
        if found.nodes:
            return smaller
        if not found.failures[failure]:
            return None
        smaller = _shrunk(smaller, failure)
    return None


def _shrunk(wanted: Instance, failure: Failure) -> Instance | None:
    """The instance one step smaller, or None if it cannot be."""
    match failure:
        case Failure.MEM if wanted.memory - 64 >= 64:
            return replace(wanted, memory=wanted.memory - 64)
        case Failure.DISK if all(size - 256 >= 256 for size in wanted.disks):
            disks = tuple(size - 256 for size in wanted.disks)
            return replace(wanted, disks=disks, disk=wanted.disk - 256 * len(disks))
        case Failure.CPU if wanted.vcpus > 1:
            return replace(wanted, vcpus=wanted.vcpus - 1)
        case Failure.SPINDLES if (wanted.disk_spindles or 0) > 1:
            return replace(wanted, disk_spindles=(wanted.disk_spindles or 0) - 1)
        case _:
            return None


def instance_of(spec: Spec, template: str, *, exclusive: bool) -> Instance:
    """A running instance of that size, with one disk."""
    return Instance(
        name="new",
        memory=spec.memory_size,
        disk=spec.disk_size,
        disks=(spec.disk_size,),
        vcpus=spec.cpu_count,
        status="running",
        primary=NOWHERE,
        template=template,
        spindle_use=spec.spindle_use,
        disk_spindles=spec.spindle_use if exclusive else None,
    )


def with_spindle_use(spec: Spec, use: int | None) -> Spec:
    """The spec with another spindle use, if one is given."""
    return spec if use is None else msgspec.structs.replace(spec, spindle_use=use)


def tally(placed: Sequence[Instance]) -> list[tuple[Instance, int]]:
    """Runs of equal instances, with their lengths."""
    runs: list[tuple[Instance, int]] = []
    for one in placed:
        if runs and _size(runs[-1][0]) == _size(one):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((one, 1))
    return runs


def _size(one: Instance) -> tuple[int, int, int, int]:
    return one.memory, one.disk, one.vcpus, one.spindle_use
