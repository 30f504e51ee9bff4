"""hroller: the same rounds, moves and exit status as Debian's."""

from pathlib import Path
from random import Random

from coordinator.htools import hroller
from tests.diff.both import CASES, SEED, needs, ours, saved, theirs
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    ("--offline-maintenance",), ("--full-evacuation",), ("--skip-non-redundant",),
    ("--ignore-non-redundant",), ("--one-step-only",), ("--print-moves",), ("--no-headers",),
    ("--node-tags", "htools:standby:auto,rack:1"), ("-G", "group-0"), ("-G", "uuid-group-1"),
    ("-vvv",), ("-v",), ("-q",), ("-f",), ("-O", "n1.x"), ("-O", "n0"),
)  # fmt: skip


@needs("hroller")
def test_same_rounds(tmp_path: Path) -> None:
    print(f"{4 * CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + 4 * CASES):
        rng = Random(seed)
        text = random_text(rng, Taste.random(rng, most_nodes=30))
        if rng.random() < 0.05:  # no master
            text = text.replace("|M|", "|N|")
        words = ["-t", saved(tmp_path / "cluster.data", text)]
        for switch in SWITCHES:
            words += switch if rng.random() < 0.15 else ()
        told = ours("hroller", hroller.OPTIONS, hroller.roll, words)
        assert told == theirs("hroller", words), f"seed {seed}: {' '.join(words)}"


@needs("hroller")
def test_two_masters_are_one_too_many(tmp_path: Path) -> None:
    rng = Random(SEED)
    text = random_text(rng, Taste(nodes=4)).replace("|N|uuid", "|M|uuid")
    words = ["-t", saved(tmp_path / "cluster.data", text), "--force"]
    told = ours("hroller", hroller.OPTIONS, hroller.roll, words)
    assert told == ("", 1) == theirs("hroller", words)
