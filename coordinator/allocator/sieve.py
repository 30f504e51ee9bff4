"""All moves of all instances estimated at once, and the few that may be the best picked out.

The variance of a figure after a move is a sum: of what leaves the instance's own nodes, which is
the same for all targets, and of what comes to the target. For most figures the latter is an
amount of the instance times a factor of the node, so that the variances of all moves of a kind
are a product of two thin matrices. What a secondary keeps free for its primary is not, and is
worked out move by move, in one array operation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.board import Board, Kind
from coordinator.allocator.books import UNKNOWN, Books, Demands
from coordinator.allocator.score import SPREADS, WEIGHTS, Term
from coordinator.allocator.shift import add_primary, add_secondary, too_many
from coordinator.allocator.terms import Score, figures

_BLOCK = 1 << 15  # moves of a kind estimated at a time, so that the numbers stay in the cache
_NO_LIMIT = np.int64(1) << 60
_BY_TARGET = frozenset({Term.RESERVED_MEM_CV, Term.RESERVED_MEM_RTOTAL, Term.N1_CNT})


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be done.

    Attributes:
        targets: positions of nodes, rising.
        disk_moves, instance_moves: whether disks may be copied, primaries changed.
        restricted: live migration only to the secondary.
        force: ignore soft limits.
    """

    targets: Ints
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """Moves of one kind, side by side."""

    kind: Kind
    instances: Ints
    targets: Ints
    estimates: Floats


@dataclass(frozen=True, slots=True)
class _Spread:
    """One spread for all instances: amounts times factors of nodes."""

    term: Term
    weight: float
    as_primary: Floats
    as_secondary: Floats
    scale: Floats  # per target
    centred: Floats  # per target
    exclusive_scale: Floats | None  # where disks take whole spindles


class Sieve:
    """The moves of one step."""

    def __init__(self, board: Board, score: Score, some: Ints, allowed: Allowed) -> None:
        self.board = board
        self.score = score
        self.some = some
        self.allowed = allowed
        self.targets = allowed.targets
        self.spreads = self._distinct_spreads()
        self.target_books = board.books.at(allowed.targets)
        self.limits = _Limits(self.target_books)
        self._held = (board.holders[:, allowed.targets] > 0).astype(np.int64)
        books = board.books
        reliable = ~(books.fails_n1 | (books.memory <= books.reserved)) | books.offline
        homes = np.concatenate((board.primary[some], board.secondary[some]))
        self.n1_matters = bool(allowed.force or not reliable.all() or board.is_offline(homes).any())

    def near_best(self, bound: float, tolerance: float) -> list[Candidates]:
        """Moves estimated within ``tolerance`` of the best, or of ``bound`` if that is less."""
        found: list[Candidates] = []
        best = bound
        with np.errstate(invalid="ignore"):  # an offline node may have none of anything
            for candidates in self._all():
                lowest = float(candidates.estimates.min(initial=np.inf))
                best = min(best, lowest)
                if lowest <= best + tolerance:
                    found.append(_only(candidates, best + tolerance))
        return [_only(each, best + tolerance) for each in found]

    def _all(self) -> Iterator[Candidates]:
        board, allowed = self.board, self.allowed
        mirrored = board.demands.mirrored[self.some]
        others = self.some[~mirrored]
        pairs = self.some[mirrored]
        offline = board.is_offline(board.primary[pairs])
        valid = np.isin(board.secondary[pairs], self.targets) & allowed.instance_moves
        yield from self._failovers(pairs[valid])
        if allowed.instance_moves:
            yield from self._towards(Kind.FAILOVER_TO_ANY, others)
        if not allowed.disk_moves:
            return
        yield from self._towards(Kind.REPLACE_SECONDARY, pairs)
        if not allowed.instance_moves:
            return
        free = offline | (not allowed.restricted)
        yield from self._towards(Kind.REPLACE_AND_FAILOVER, pairs[free])
        yield from self._towards(Kind.FAILOVER_AND_REPLACE, pairs[free & valid])
        if not allowed.restricted:
            yield from self._towards(Kind.REPLACE_PRIMARY, pairs[valid])

    def _failovers(self, some: Ints) -> Iterator[Candidates]:
        if not len(some):
            return
        nowhere = np.zeros(len(some), dtype=np.int64)
        outcome = self.board.carry_out(Kind.FAILOVER, some, nowhere, force=self.allowed.force)
        fits = outcome.codes == 0
        changed = outcome.changed
        value = np.full(len(some), np.inf)
        value[fits] = self._roughly(changed.nodes[:, fits], changed.figures[:, :, fits])
        value += WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * outcome.crowding
        yield Candidates(Kind.FAILOVER, some, nowhere, value)

    def _roughly(self, nodes: Ints, after: Floats) -> Floats:
        """Scores from changes of variance, not from all nodes."""
        constant, squares, shifts = self.own_effects(nodes, after)
        count = self.score.count
        for term in SPREADS:
            variance = (
                self.score.variances[term] + squares[term] / count - (shifts[term] / count) ** 2
            )
            constant += WEIGHTS[term] * np.sqrt(np.maximum(variance, 0))
        return constant

    def own_effects(self, nodes: Ints, after: Floats) -> tuple[Floats, Floats, Floats]:
        """What changes on given nodes: the sums' part of the score, and of the spreads.

        Returns:
            The sums' part of the score; growth of the sum of squares around the mean, and of
            the sum, both of shape (20, instances).
        """
        before = self.score.before[:, nodes]
        online = self.score.online[nodes]
        means = self.score.means[:, None, None]
        shift = after - before
        growth = np.where(online, shift * (after + before - 2 * means), 0.0).sum(axis=1)
        online_shift = np.where(online, shift, 0.0).sum(axis=1)
        total = np.full(
            nodes.shape[1],
            WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * float(self.score.crowding),
        )
        for term in Term:
            if term not in SPREADS and term is not Term.LOCATION_EXCLUSION_SCORE:
                total += WEIGHTS[term] * (self.score.sums[term] + shift[term].sum(axis=0))
        return total, growth, online_shift

    def _distinct_spreads(self) -> list[_Spread]:
        """Spreads that targets change, equal ones once with their weights added."""
        demands, some, targets = self.board.demands, self.some, self.targets
        books = self.board.books.at(targets)
        with np.errstate(divide="ignore"):
            per_memory = 1 / books.total_memory
            per_disk = np.where(books.disk_unit == 0, 0.0, 1 / books.disk_unit)
            per_cpu = 1 / books.total_cpus / books.speed
            per_spindle = np.where(books.exclusive, 0.0, 1 / books.spindle_limit)
        shared, ones = np.where(books.exclusive, 0.0, per_disk), np.ones(len(targets))
        none = np.zeros(len(some), dtype=np.int64)
        load = demands.load[:, some]
        memory, cpus, disk = demands.memory[some], demands.cpus[some], demands.disk[some]
        next_disk, spindles = demands.next_disk[some], demands.spindles[some]
        next_spindles = demands.next_spindles[some]
        rows: list[tuple[Term, Ints | Floats, Ints | Floats, Floats]] = [
            (Term.FREE_MEM_CV, -memory, none, per_memory),
            (Term.FREE_DISK_CV, -disk, -disk, shared),
            (Term.VCPU_RATIO_CV, cpus, none, per_cpu),
            (Term.CPU_LOAD_CV, load[0], none, ones),
            (Term.MEM_LOAD_CV, load[1], none, ones),
            (Term.DISK_LOAD_CV, load[2], load[2], ones),
            (Term.NET_LOAD_CV, load[3], none, ones),
            (Term.SPINDLES_CV, spindles, spindles, per_spindle),
            (Term.FREE_MEM_CV_FORTH, -demands.next_memory[some], none, per_memory),
            (Term.FREE_DISK_CV_FORTH, -next_disk, -next_disk, shared),
            (Term.VCPU_RATIO_CV_FORTH, demands.next_cpus[some], none, per_cpu),
            (Term.SPINDLES_CV_FORTH, next_spindles, next_spindles, per_spindle),
        ]
        found: dict[bytes, _Spread] = {}
        for term, first, second, scale in rows:
            as_primary, as_secondary = first.astype(np.float64), second.astype(np.float64)
            centred = self.score.before[term, targets] - self.score.means[term]
            whole = self.score.before[term, self.score.online]
            is_disk = term in {Term.FREE_DISK_CV, Term.FREE_DISK_CV_FORTH}
            key = bytes([is_disk]) + b"".join(
                part.tobytes() for part in (as_primary, as_secondary, scale, whole)
            )
            weight = WEIGHTS[term] + (found[key].weight if key in found else 0.0)
            first_term = found[key].term if key in found else term
            found[key] = _Spread(
                first_term, weight, as_primary, as_secondary, scale, centred,
                per_disk * books.exclusive if is_disk and books.exclusive.any() else None,
            )  # fmt: skip
        return list(found.values())

    def clashes(self, some: Ints, as_primary: bool) -> Ints | None:
        """Matrix of exclusion tags that are taken on targets; None if that plays no part."""
        if not as_primary or not len(self._held):
            return None
        taken: Ints = self.board.tagged[some] @ self._held
        return taken

    def _towards(self, kind: Kind, some: Ints) -> Iterator[Candidates]:
        rows = max(1, _BLOCK // max(1, len(self.targets)))
        if len(some) and len(self.targets):
            moves = _Moves(self, kind, some)
            for start in range(0, len(some), rows):
                yield moves.block(slice(start, start + rows))


class _Moves:
    """All moves of one kind: rows are instances, columns targets."""

    def __init__(self, sieve: "Sieve", kind: Kind, some: Ints) -> None:
        board, score = sieve.board, sieve.score
        self._sieve, self._kind, self._some = sieve, kind, some
        self._demands = demands = board.demands.at(some)
        self._home, self._mirror = home, mirror = board.primary[some], board.secondary[some]
        force = sieve.allowed.force
        from_offline = board.is_offline(home) | force
        replaced_offline = board.is_offline(mirror) | force
        self._real = demands.count > 0
        nothing = np.zeros(len(some), dtype=np.int64)
        fits = np.ones(len(some), dtype=np.bool_)
        less, mirror_less = board.at_home(some)

        def run(on: Books, at: Ints, strict: Bools) -> Books:
            clashes = board.clashes(some, at)
            codes, after = add_primary(
                on, demands, clashes=clashes, location=nothing, force=~strict
            )
            nonlocal fits
            fits = fits & (codes == 0)
            return after

        def keep(on: Books, strict: Bools) -> Books:
            codes, after = add_secondary(on, demands, promised=nothing, force=~strict)
            nonlocal fits
            fits = fits & (codes == 0)
            return after

        own: list[tuple[Ints, Books]]
        self._dependent: Books | None = None  # whose reserve depends on the target, if not its own
        self._holder = self._peer = home
        match kind:
            case Kind.FAILOVER_TO_ANY:
                self._strict = ~from_offline
                own = [(home, less)]
                self._new_primary = None
            case Kind.REPLACE_SECONDARY:
                self._strict = ~replaced_offline
                codes, back = add_primary(
                    less,
                    demands,
                    clashes=board.freed(some),
                    location=nothing,
                    force=np.ones(len(some), dtype=np.bool_),
                )
                fits = codes == 0
                own = [(home, back), (mirror, mirror_less)]
                self._new_primary = self._peer = home
            case Kind.REPLACE_AND_FAILOVER:
                self._strict = np.full(len(some), not force)
                self._strict_dependent = ~replaced_offline
                self._dependent, self._holder = less, home
                own = [(home, keep(less, ~replaced_offline)), (mirror, mirror_less)]
                self._new_primary = None
            case Kind.REPLACE_PRIMARY:
                self._strict = self._strict_dependent = ~from_offline
                run(mirror_less, mirror, ~from_offline)
                self._dependent, self._holder = mirror_less, mirror
                own = [(mirror, keep(mirror_less, ~from_offline)), (home, less)]
                fits &= board.may_migrate[home, mirror]
                self._new_primary = None
            case _:
                self._strict = ~from_offline
                own = [(mirror, run(mirror_less, mirror, ~from_offline)), (home, less)]
                fits &= board.may_migrate[home, mirror]
                self._new_primary = self._peer = mirror
        self._fits = fits
        nodes = np.stack([node for node, _ in own])
        after = np.stack([figures(books) for _, books in own], axis=1)
        if self._dependent is not None:
            by_target = sorted(_BY_TARGET)
            after[by_target, 0] = score.before[by_target][:, nodes[0]]
        self._constant, self._squares, self._shifts = sieve.own_effects(nodes, after)
        self._as_primary = self._new_primary is None
        self._checks = sieve.limits.checks(demands, as_primary=self._as_primary)
        self._split_spreads()

    def _split_spreads(self) -> None:
        """Put the spreads that targets do not change into the constant."""
        sieve, score = self._sieve, self._sieve.score
        count = score.count
        position = np.searchsorted(sieve.some, self._some)
        self._factors: list[tuple[float, Floats, Floats]] = []
        known = -np.maximum(self._demands.disk_spindles, 0)
        for spread in sieve.spreads:
            amounts = spread.as_primary if self._as_primary else spread.as_secondary
            amounts = amounts[position]
            shift, growth = self._shifts[spread.term], self._squares[spread.term]
            base = score.variances[spread.term] + growth / count - (shift / count) ** 2
            left, right = [base], [np.ones(len(sieve.targets))]
            parts = [(amounts, spread.scale)]
            if spread.exclusive_scale is not None:
                counts = known * self._real if spread.term is Term.FREE_DISK_CV else known
                parts.append((counts.astype(np.float64), spread.exclusive_scale))
            for amount, scale in parts:
                if amount.any():
                    left += [amount, amount * amount, amount * shift]
                    right += [
                        2 * spread.centred * scale / count,
                        scale * scale * (1 - 1 / count) / count,
                        -2 * scale / count**2,
                    ]
            if len(left) == 1:
                self._constant += spread.weight * np.sqrt(np.maximum(base, 0))
            else:
                # The weight goes under the root.
                table = np.stack(left, axis=1) * spread.weight**2
                self._factors.append((spread.weight, table, np.stack(right)))
        if self._kind is Kind.FAILOVER_TO_ANY:
            term = Term.RESERVED_MEM_CV
            shift, growth = self._shifts[term], self._squares[term]
            base = score.variances[term] + growth / count - (shift / count) ** 2
            self._constant += WEIGHTS[term] * np.sqrt(np.maximum(base, 0))

    def block(self, part: slice) -> Candidates:
        """Estimate the moves of some rows; what is impossible costs infinitely much."""
        sieve, some = self._sieve, self._some[part]
        targets = sieve.targets
        home, mirror = self._home[part], self._mirror[part]
        estimates = np.repeat(self._constant[part][:, None], len(targets), axis=1)
        for _, left, right in self._factors:
            variances = left[part] @ right
            np.maximum(variances, 0, out=variances)
            np.sqrt(variances, out=variances)
            estimates += variances
        clashes = sieve.clashes(some, self._as_primary)
        if clashes is not None:  # a forthcoming instance is let in all the same
            clashes = clashes * self._real[part][:, None]
        ok = self._checks.matrix(part, self._strict[part], clashes)
        self._add_rare(estimates, part)
        if self._kind is not Kind.FAILOVER_TO_ANY:
            self._add_reserve(estimates, ok, part)
        ok &= self._fits[part][:, None]
        if not sieve.board.may_migrate.all():
            source = {
                Kind.FAILOVER_TO_ANY: home,
                Kind.REPLACE_AND_FAILOVER: home,
                Kind.REPLACE_PRIMARY: mirror,
            }.get(self._kind)
            if source is not None:
                ok &= sieve.board.may_migrate[source][:, targets]
        ok &= (home[:, None] != targets) & (mirror[:, None] != targets)
        self._set_unknown(estimates, ok, part)
        row, column = np.nonzero(ok)
        return Candidates(self._kind, some[row], targets[column], estimates[row, column])

    def _set_unknown(self, estimates: Floats, ok: Bools, part: slice) -> None:
        """Exact scores of instances that do not tell what spindles they take, where that counts."""
        sieve, board = self._sieve, self._sieve.board
        if not board.books.exclusive.any():
            return
        unknown = self._demands.disk_spindles[part] == UNKNOWN
        row, column = np.nonzero(ok & unknown[:, None])
        if len(row):
            outcome = board.carry_out(
                self._kind, self._some[part][row], sieve.targets[column], force=sieve.allowed.force
            )
            estimates[row, column] = sieve.score.exact(outcome.changed)

    def _add_reserve(self, estimates: Floats, ok: Bools, part: slice) -> None:
        """What a node keeps free for its new peer, its part in the score and whether it can."""
        sieve, board, score = self._sieve, self._sieve.board, self._sieve.score
        targets, count = sieve.targets, score.count
        real = self._real[part][:, None]
        needed = np.where(self._real, self._demands.needed, -_NO_LIMIT)[part][:, None]
        if self._dependent is None:
            holder, strict = targets[None, :], self._strict[part][:, None]
            promised = board.promised[targets][:, self._peer[part]].T
            books = sieve.target_books
            base, memory, fails = (
                books.reserved[None, :], books.memory[None, :], books.fails_n1[None, :]
            )  # fmt: skip
            busy = (books.primaries + books.secondaries)[None, :]
        else:
            holder = self._holder[part][:, None]
            strict = self._strict_dependent[part][:, None]
            promised = board.promised[self._holder[part]][:, targets]
            one = self._dependent
            base, memory, fails = (
                one.reserved[part][:, None], one.memory[part][:, None], one.fails_n1[part][:, None]
            )  # fmt: skip
            busy = (one.primaries + one.secondaries)[part][:, None]
        after = np.maximum(base, promised + needed)
        ok &= (after < memory) | fails | ~(strict & real)
        total, online = board.books.total_memory[holder], score.online[holder]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(online, (after - board.books.reserved[holder]) / total, 0.0)
        centred = score.before[Term.RESERVED_MEM_CV, holder] - score.means[Term.RESERVED_MEM_CV]
        centred = np.where(online, centred, 0.0)
        own_shift = self._shifts[Term.RESERVED_MEM_CV][part][:, None]
        own_growth = self._squares[Term.RESERVED_MEM_CV][part][:, None]
        growth = own_growth + shift * (shift + 2 * centred)
        estimates += WEIGHTS[Term.RESERVED_MEM_RTOTAL] * shift
        shift += own_shift
        shift *= shift
        growth /= count
        growth -= shift / count**2
        growth += score.variances[Term.RESERVED_MEM_CV]
        np.maximum(growth, 0, out=growth)
        estimates += WEIGHTS[Term.RESERVED_MEM_CV] * np.sqrt(growth)
        if sieve.n1_matters:
            counts = self._demands.count[part][:, None]
            failing = np.where(real, memory <= after, fails) & online
            was = score.before[Term.N1_CNT, holder]
            estimates += WEIGHTS[Term.N1_CNT] * (failing * (busy + counts) - was)

    def _add_rare(self, estimates: Floats, part: slice) -> None:
        """What only matters where N+1 fails, or instances have tags that say where to be."""
        sieve, board, score = self._sieve, self._sieve.board, self._sieve.score
        some, targets = self._some[part], sieve.targets
        if self._as_primary and sieve.n1_matters:
            books, demands = sieve.target_books, self._demands
            memory = books.memory - demands.memory[part][:, None]
            failing = np.where(self._real[part][:, None], memory <= books.reserved, books.fails_n1)
            busy = books.primaries + books.secondaries + demands.count[part][:, None]
            was = score.before[Term.N1_CNT, targets]
            estimates += WEIGHTS[Term.N1_CNT] * (failing * busy - was)
        clashes = sieve.clashes(some, self._as_primary)
        if clashes is not None:
            estimates += WEIGHTS[Term.PRI_TAGS_SCORE] * clashes
        home, mirror = self._home[part], self._mirror[part]
        real = self._real[part][:, None]
        if self._kind is Kind.FAILOVER_TO_ANY:
            unmet = board.unmet[np.ix_(some, targets)]
            estimates += WEIGHTS[Term.LOCATION_SCORE] * (unmet * real)
        else:
            if self._new_primary is None:
                kept = home if self._kind is Kind.REPLACE_AND_FAILOVER else mirror
                unmet = board.unmet[np.ix_(some, targets)]
            else:
                kept = self._new_primary[part]
                unmet = board.unmet[some, kept][:, None]
                real = real & score.online[kept][:, None]
            near = board.shared_places[kept][:, targets] + unmet
            if near.any():
                estimates += WEIGHTS[Term.LOCATION_SCORE] * (near * real)
        if board.has_crowds:
            weight = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
            if self._new_primary is None:
                again, once = board.crowd_weights(some)
                come = (again + once) @ board.places[targets].T
                estimates += weight * (come - again.sum(axis=1)[:, None])
            else:
                crowding = board.crowding_of(some, self._new_primary[part])
                estimates += weight * crowding[:, None]


class _Limits:
    """What fits on the targets, as upper bounds of amounts."""

    def __init__(self, books: Books) -> None:
        self._books = books
        room = books.memory - np.where(books.fails_n1, 0, books.reserved)
        self.memory = np.minimum(room, books.memory)
        self.disk = _disk_room(books.disk, books)
        self.next_disk = _disk_room(books.next_disk, books)
        self.spindles = _spindle_room(books.spindles, books)
        self.next_spindles = _spindle_room(books.next_spindles, books)

    def checks(self, demands: Demands, *, as_primary: bool) -> "_Checks":
        """The checks of these instances as primaries or as secondaries on each target."""
        books, local, real = self._books, demands.local, demands.count > 0
        disk = np.where(local & real, demands.disk, -_NO_LIMIT)
        soon_disk = np.where(local, demands.next_disk, -_NO_LIMIT)
        spindles = np.where(local & real, demands.spindles, -_NO_LIMIT)
        soon_spindles = np.where(local, demands.next_spindles, -_NO_LIMIT)
        strict = [
            (disk, self.disk),
            (soon_disk, self.next_disk),
            (spindles, self.spindles),
            (soon_spindles, self.next_spindles),
        ]
        hard = [(disk, books.disk)]
        cpus = None
        if as_primary:
            memory = np.where(real, demands.memory, -_NO_LIMIT)
            hard.append((memory, books.memory))
            strict += [(memory, self.memory), (demands.next_memory, books.next_memory)]
            cpus = _cpu_table(demands, books)
        else:
            needed = np.where(real, demands.needed, -_NO_LIMIT)
            strict += [(needed, books.memory), (demands.needed, books.next_memory)]
        return _Checks(_merged(strict), _merged(hard), cpus, _exclusive(demands, books))


@dataclass(frozen=True, slots=True)
class _Checks:
    strict: list[tuple[Ints, Ints]]  # amounts of instances, to be below those of targets
    hard: list[tuple[Ints, Ints]]
    cpus: tuple[Ints, Bools] | None  # row of the table per instance; row by amount, by target
    exclusive: tuple[Bools, Bools] | None  # real and coming

    def matrix(self, part: slice, strict: Bools, clashes: Ints | None) -> Bools:
        """Row by instance, column by target."""
        ok = self._table(self.strict, part)
        if self.cpus is not None:
            ok &= self.cpus[1][self.cpus[0][part]]
        if clashes is not None:
            ok &= clashes == 0
        if self.exclusive is not None:
            ok &= self.exclusive[0][part] & self.exclusive[1][part]
        if not strict.all():
            lax = self._table(self.hard, part)
            if self.exclusive is not None:
                lax &= self.exclusive[0][part]
            ok = np.where(strict[:, None], ok, lax)
        return ok

    def _table(self, limits: list[tuple[Ints, Ints]], part: slice) -> Bools:
        (amounts, limit), *others = limits
        ok: Bools = amounts[part][:, None] < limit
        for amounts, limit in others:
            ok &= amounts[part][:, None] < limit
        return ok


def _disk_room(disk: Ints, books: Books) -> Ints:
    room: Ints = np.minimum(disk, disk - books.least_disk + 1)
    return room


def _spindle_room(spindles: Ints, books: Books) -> Ints:
    counts = np.isfinite(books.spindle_limit) & ~books.exclusive
    limit = np.floor(np.where(counts, books.spindle_limit, 0)).astype(np.int64)
    room: Ints = np.where(counts, limit - spindles + 1, _NO_LIMIT)
    return room


def _merged(limits: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Equal amounts compared once."""
    found: dict[bytes, tuple[Ints, Ints]] = {}
    for amounts, limit in limits:
        key = amounts.tobytes()
        found[key] = amounts, np.minimum(limit, found[key][1]) if key in found else limit
    return list(found.values())


def _cpu_table(demands: Demands, books: Books) -> tuple[Ints, Bools]:
    kinds = np.stack((demands.cpus, demands.next_cpus, demands.count), axis=1)
    amounts, rows = np.unique(kinds, axis=0, return_inverse=True)
    now, soon, real = amounts[:, :1], amounts[:, 1:2], amounts[:, 2:] > 0
    ok = ~(real & too_many(books, books.cpus + now)) & ~too_many(books, books.next_cpus + soon)
    return rows.ravel(), ok


def _exclusive(demands: Demands, books: Books) -> tuple[Bools, Bools] | None:
    if not books.exclusive.any():
        return None
    wanted = np.where(demands.disk_spindles == UNKNOWN, _NO_LIMIT, demands.disk_spindles)[:, None]
    exempt = ~books.exclusive | ~demands.local[:, None]
    now = exempt | (demands.count == 0)[:, None] | (wanted <= books.free_spindles)
    return now, exempt | (wanted <= books.next_free_spindles)


def _only(candidates: Candidates, limit: float) -> Candidates:
    near = np.flatnonzero(candidates.estimates <= limit)
    return Candidates(
        candidates.kind,
        candidates.instances[near],
        candidates.targets[near],
        candidates.estimates[near],
    )
