"""hcheck: the same figures and exit status as Debian's."""

from pathlib import Path
from random import Random

from coordinator.htools import hcheck
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, needs, ours, saved, theirs
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    ("--no-simulation",), ("--machine-readable",), ("--machine-readable=no",),
    ("--no-capacity-checks",), ("-q",), ("-v",), ("-E",), ("-l", "2"), ("--no-disk-moves",),
    ("--no-instance-moves",), ("--ignore-soft-errors",), ("--min-disk=0.2",), ("--max-cpu=0.5",),
    ("-O", "n1.x"), ("-g", "0.001"), ("--exclusion-tags=service",), ("--ignore-dynu",),
    ("-e", "0.1"), ("--min-gain-limit", "5"),
)  # fmt: skip


def is_split(text: str) -> bool:
    """Whether a mirrored instance is in two groups, of which Debian's hcheck dies."""
    cluster = parse_cluster(text)
    return any(
        one.template == "drbd" and len({cluster.nodes[home].group for home in one.homes}) > 1
        for one in cluster.instances
    )


@needs("hcheck")
def test_same_health(tmp_path: Path) -> None:
    print(f"{2 * CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + 2 * CASES):
        rng = Random(seed)
        text = random_text(rng, Taste.random(rng))
        if is_split(text):
            continue
        words = ["-t", saved(tmp_path / "cluster.data", text)]
        for switch in SWITCHES:
            words += switch if rng.random() < 0.15 else ()
        told = ours("hcheck", hcheck.OPTIONS, hcheck.check, words)
        assert told == theirs("hcheck", words), f"seed {seed}: {' '.join(words)}"


@needs("hcheck")
def test_a_cluster_without_nodes_is_healthy(tmp_path: Path) -> None:
    empty = saved(tmp_path / "cluster.data", "g|u|preferred||\n\n\n\n\n")
    for words in (["-t", empty], ["-t", empty, "--machine-readable"]):
        told = ours("hcheck", hcheck.OPTIONS, hcheck.check, words)
        assert told == theirs("hcheck", words)
