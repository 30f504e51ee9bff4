"""hbal: the same moves, scores, commands and exit status as Debian's."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from coordinator.allocator.balance import Balance, Limits
from coordinator.allocator.books import open_books
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
