"""hbal: the same moves, scores, commands and exit status as Debian's."""

import contextlib
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from common.record import replace
from coordinator.allocator.balancing.balance import Balance
from coordinator.allocator.balancing.move_matrix import Candidates
from coordinator.allocator.balancing.moves import Limits, MoveKind
from coordinator.allocator.balancing.outcomes import simulate
from coordinator.allocator.balancing.shortlist import near_best
from coordinator.allocator.balancing.step import Step
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.htools import hbal
from coordinator.htools.program import run
from coordinator.htools.text import format_cluster, parse_cluster
from coordinator.htools.view import moved
from tests.diff.both import CASES, SEED, find, needs, ours, saved, theirs
from tests.diff.messages import random_message
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
        told = ours("hbal", hbal.OPTIONS, hbal.balance, [*words, "--strict-compat"])
        assert told == theirs("hbal", words), f"seed {seed}: {' '.join(words)}"


@needs("hbal")
def test_same_tags_are_shown_and_saved(tmp_path: Path) -> None:
    """Tags that an option names are heeded, and are not the cluster's."""
    rng = Random(SEED)
    path = saved(tmp_path / "cluster.data", random_text(rng, Taste(nodes=4, exclusion=True)))
    words = ["-t", path, "-v", "--exclusion-tags=rack,service", "-l", "1", "-S"]
    mine = [*words, str(tmp_path / "ours"), "--strict-compat"]
    assert ours("hbal", hbal.OPTIONS, hbal.balance, mine) == theirs(
        "hbal", [*words, str(tmp_path / "theirs")]
    )
    other = (tmp_path / "theirs.original").read_text(encoding="utf-8")
    assert (tmp_path / "ours.original").read_text(encoding="utf-8") == other


FIELDS = (
    "-p+idx,fqdn,amem,plist,slist,ptags,peermap,spindle_count,hi_spindles,inst_spindles,unheard-of"
)


@needs("hbal")
def test_same_tables(tmp_path: Path) -> None:
    """What goes to standard error: nodes and instances, before and after."""
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        taste = replace(Taste.random(rng), groups=1)  # Debian's fails on those that are split
        path = saved(tmp_path / "cluster.data", random_text(rng, taste))
        words = ["-t", path, "-l", "4", rng.choice(("-p", FIELDS, "-pname,pfmem"))]
        words += rng.choice(([], ["--print-instances"]))
        words += rng.choice(([], [], ["-v"], ["-vv"], ["-q"], ["-qq"], ["-O", "n1.x"]))
        mine, other = errors_of_ours([*words, "--strict-compat"]), errors_of_theirs(words)
        assert mine == other, f"seed {seed}: {' '.join(words)}"


def errors_of_theirs(words: list[str]) -> str:
    program = find("hbal")
    assert program is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and nothing else runs meanwhile
        [program, *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr


def errors_of_ours(words: list[str]) -> str:
    errors = io.StringIO()
    silence = contextlib.redirect_stdout(io.StringIO())
    with contextlib.redirect_stderr(errors), silence, pytest.raises(SystemExit):
        run("hbal", hbal.OPTIONS, hbal.balance, words)
    return errors.getvalue()


@needs("hbal")
def test_looking_ahead_ends_no_worse(tmp_path: Path) -> None:
    """And with as many moves as are allowed."""
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        taste = replace(Taste.random(rng), groups=1)
        path = saved(tmp_path / "cluster.data", random_text(rng, taste))
        words = ["-t", path, *rng.choice(((), (), ("-l", "5"), ("-E",), ("-g", "0.1")))]
        mine, code = ours("hbal", hbal.OPTIONS, hbal.balance, words)
        other, _ = theirs("hbal", words)
        assert code == 0
        before, after = (re.search(r"improved from .* to (\S+)", each) for each in (other, mine))
        if before is not None:
            assert after is not None
            assert float(after[1]) <= float(before[1]), f"seed {seed}: {' '.join(words)}"
        length = re.search(r"Solution length=(\d+)", mine)
        assert length is None or "-l" not in words or int(length[1]) <= 5


def test_a_request_describes_the_same_cluster_as_text(tmp_path: Path) -> None:
    """Debian's counts every instance of a request twice, so ours is held against itself."""
    for seed in range(SEED, SEED + min(CASES, 10)):
        message = random_message(Random(seed), "relocate")
        if not message["instances"]:
            continue  # of an empty cluster nothing is saved
        for node in message["nodes"].values():  # text has no fractions
            node |= {key: int(node[key]) for key in ("total_memory", "total_disk", "total_cpus")}
        request = saved(tmp_path / "request.json", json.dumps(message))
        group = next(iter(message["nodegroups"].values()))["name"]
        rest = ["-C", "-G", group, "-l", "3", "--strict-compat"]
        save = ["-S", str(tmp_path / "saved")]
        told = ours("hbal", hbal.OPTIONS, hbal.balance, ["-I", request, *rest, *save])
        text = ["-t", str(tmp_path / "saved.original"), *rest]
        assert told == ours("hbal", hbal.OPTIONS, hbal.balance, text), f"seed {seed}"


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_moves_keep_their_promises(seed: int) -> None:
    """Each is better than the one before, fits, and leaves the score it foretold."""
    rng = Random(seed)
    taste = Taste(nodes=rng.randint(3, 10), per_node=4, uniform=seed % 2 == 0, down=0.1)
    cluster = parse_cluster(random_text(rng, taste))
    model = ClusterModel(cluster)
    balance = Balance(model, np.arange(len(cluster.nodes)), Limits())
    before = balance.score().value
    fitted = (model.resources.memory > 0) & (model.resources.disk > 0)
    moves = []
    for move in balance.moves():
        moves.append(move)
        assert move.score < before
        before = move.score
        assert balance.score().value == move.score
    resources = balance.state.resources
    assert ((resources.memory > 0) & (resources.disk > 0))[fitted].all()
    afresh = ClusterModel(moved(cluster, moves))
    assert (afresh.resources.primaries == resources.primaries).all()
    assert (afresh.resources.reserved == resources.reserved).all()
    assert (afresh.resources.disk == resources.disk).all()


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_text_is_read_as_it_was_written(seed: int) -> None:
    rng = Random(seed)
    cluster = parse_cluster(random_text(rng, Taste.random(rng)))
    text = format_cluster(cluster)
    assert format_cluster(parse_cluster(text)) == text


@pytest.mark.parametrize("seed", range(SEED, SEED + 40))
def test_estimates_are_the_scores(seed: int) -> None:
    """The shortlist lets through what fits, all of it, and estimates it right."""
    rng = Random(seed)
    cluster = parse_cluster(random_text(rng, Taste.random(rng)))
    nodes = np.array([i for i, node in enumerate(cluster.nodes) if node.group == 0])
    limits = Limits(ignore_soft_errors=rng.random() < 0.2)
    balance = Balance(ClusterModel(cluster), nodes, limits)
    state, score, aims = balance.state, balance.score(), balance.targets
    if not np.isfinite(score.value):
        return
    some = balance.movable
    mirrored = state.demands.mirrored[some]
    near = near_best(Step(state, score, some, aims, limits), 1e9, 1e9)
    for kind in MoveKind:
        found = [each for each in near if each.kind is kind]
        pairs = {(i, t): e for c in found for i, t, e in _each(c)}
        movers = some[mirrored == (kind is not MoveKind.FAILOVER_TO_ANY)]
        if kind in {MoveKind.FAILOVER, MoveKind.REPLACE_PRIMARY, MoveKind.FAILOVER_AND_REPLACE}:
            movers = movers[np.isin(state.secondary[movers], aims)]
        targets = np.zeros(1, dtype=np.int64) if kind is MoveKind.FAILOVER else aims
        instance, target = (table.ravel() for table in np.meshgrid(movers, targets, indexing="ij"))
        if kind is not MoveKind.FAILOVER:
            moves = (state.primary[instance] != target) & (state.secondary[instance] != target)
            instance, target = instance[moves], target[moves]
        if not len(instance):
            assert not pairs
            continue
        outcome = simulate(state, kind, instance, target, force=limits.ignore_soft_errors)
        exact = score.exact(outcome.changed)
        fits = outcome.codes == 0
        wanted = dict(zip(zip(instance[fits], target[fits], strict=True), exact[fits], strict=True))
        assert pairs.keys() == wanted.keys(), kind
        assert all(abs(pairs[key] - value) < 1e-7 for key, value in wanted.items()), kind


def _each(candidates: Candidates) -> Iterator[tuple[int, int, float]]:
    columns = (candidates.instances, candidates.targets, candidates.estimates)
    yield from zip(*(column.tolist() for column in columns), strict=True)
