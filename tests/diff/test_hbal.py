"""hbal: the same moves, scores, commands and exit status as Debian's."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from coordinator.allocator.balance import Balance, Limits
from coordinator.allocator.board import Kind
from coordinator.allocator.books import open_books
from coordinator.allocator.sieve import Allowed, Candidates, Sieve
from coordinator.htools import hbal, hinfo
from coordinator.htools.text import format_cluster, parse_cluster
from coordinator.htools.view import moved
from tests.diff.both import CASES, SEED, needs, ours, saved, theirs
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    ("--ignore-soft-errors",), ("-E",), ("--no-disk-moves",), ("--no-instance-moves",),
    ("--restricted-migration",), ("--min-disk=0.3",), ("--max-cpu=0.5",), ("-g", "0.0001"),
    ("-l", "3"), ("-O", "n1.x"), ("-vvv",), ("-q",), ("--exclusion-tags=service",),
)  # fmt: skip


@needs("hbal")
def test_same_moves(tmp_path: Path) -> None:
    print(f"{CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        taste = Taste.random(rng)
        path = saved(tmp_path / "cluster.data", random_text(rng, taste))
        words = ["-t", path, "-C"]
        for switch in SWITCHES:
            words += switch if rng.random() < 0.1 else ()
        if taste.groups > 1:
            words += ["-G", "group-0"]
        told = ours("hbal", hbal.OPTIONS, hbal.balance, words)
        assert told == theirs("hbal", words), f"seed {seed}: {' '.join(words)}"


@needs("hinfo")
def test_same_information(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        path = saved(tmp_path / "cluster.data", random_text(rng, Taste.random(rng)))
        words = ["-t", path, *rng.choice(((), ("-vv",), ("-O", "n1.x")))]
        told = ours("hinfo", hinfo.OPTIONS, hinfo.inform, words)
        assert told == theirs("hinfo", words), f"seed {seed}: {' '.join(words)}"


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_moves_keep_their_promises(seed: int) -> None:
    """Each is better than the one before, fits, and leaves the score it foretold."""
    rng = Random(seed)
    taste = Taste(nodes=rng.randint(3, 10), per_node=4, uniform=seed % 2 == 0, down=0.1)
    cluster = parse_cluster(random_text(rng, taste))
    opening = open_books(cluster)
    balance = Balance(opening, np.arange(len(cluster.nodes)), Limits())
    before = balance.score().value
    fitted = (opening.books.memory > 0) & (opening.books.disk > 0)
    moves = []
    for move in balance.moves():
        moves.append(move)
        assert move.score < before
        before = move.score
        assert balance.score().value == move.score
    books = balance.board.books
    assert ((books.memory > 0) & (books.disk > 0))[fitted].all()
    afresh = open_books(moved(cluster, moves))
    assert (afresh.books.primaries == books.primaries).all()
    assert (afresh.books.reserved == books.reserved).all()
    assert (afresh.books.disk == books.disk).all()


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_text_is_read_as_it_was_written(seed: int) -> None:
    rng = Random(seed)
    cluster = parse_cluster(random_text(rng, Taste.random(rng)))
    text = format_cluster(cluster)
    assert format_cluster(parse_cluster(text)) == text


@pytest.mark.parametrize("seed", range(SEED, SEED + 40))
def test_estimates_are_the_scores(seed: int) -> None:
    """The sieve lets through what fits, all of it, and estimates it right."""
    rng = Random(seed)
    cluster = parse_cluster(random_text(rng, Taste.random(rng)))
    nodes = np.array([i for i, node in enumerate(cluster.nodes) if node.group == 0])
    balance = Balance(open_books(cluster), nodes, Limits())
    board, score = balance.board, balance.score()
    if not np.isfinite(score.value):
        return
    force = rng.random() < 0.2
    allowed = Allowed(np.flatnonzero(~board.books.offline), force=force)
    some = balance.movable
    mirrored = board.demands.mirrored[some]
    near = Sieve(board, score, some, allowed).near_best(1e9, 1e9)
    for kind in Kind:
        found = [each for each in near if each.kind is kind]
        pairs = {(i, t): e for c in found for i, t, e in _each(c)}
        movers = some[mirrored == (kind is not Kind.FAILOVER_TO_ANY)]
        if kind in {Kind.FAILOVER, Kind.REPLACE_PRIMARY, Kind.FAILOVER_AND_REPLACE}:
            movers = movers[np.isin(board.secondary[movers], allowed.targets)]
        targets = np.zeros(1, dtype=np.int64) if kind is Kind.FAILOVER else allowed.targets
        instance, target = (table.ravel() for table in np.meshgrid(movers, targets, indexing="ij"))
        if kind is not Kind.FAILOVER:
            moves = (board.primary[instance] != target) & (board.secondary[instance] != target)
            instance, target = instance[moves], target[moves]
        if not len(instance):
            assert not pairs
            continue
        outcome = board.carry_out(kind, instance, target, force=force)
        exact = score.exact(outcome.changed)
        fits = outcome.codes == 0
        wanted = dict(zip(zip(instance[fits], target[fits], strict=True), exact[fits], strict=True))
        assert pairs.keys() == wanted.keys(), kind
        assert all(abs(pairs[key] - value) < 1e-7 for key, value in wanted.items()), kind


def _each(candidates: Candidates) -> Iterator[tuple[int, int, float]]:
    columns = (candidates.instances, candidates.targets, candidates.estimates)
    yield from zip(*(column.tolist() for column in columns), strict=True)
