"""hsqueeze: the same nodes, commands and exit status as Debian's."""

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from coordinator.htools import hsqueeze
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, needs, ours, saved, theirs
from tests.diff.luxi_server import Answering, serving
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    ("-C",), ("-C",), ("-v",), ("--no-headers",), ("--minimal-resources=0.5",),
    ("--minimal-resources=8",), ("--target-resources=0.3",), ("--target-resources=12.7",),
    ("--minimal-resources=30",), ("--minimal-resources=0",), ("--target-resources=0",),
)  # fmt: skip


@needs("hsqueeze")
def test_same_nodes(tmp_path: Path) -> None:
    print(f"{CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        text = random_text(rng, Taste.random(rng, most_nodes=12))
        words = ["-t", saved(tmp_path / "cluster.data", text)]
        for switch in SWITCHES:
            words += switch if rng.random() < 0.15 else ()
        told = ours("hsqueeze", hsqueeze.OPTIONS, hsqueeze.squeeze, words)
        assert told == theirs("hsqueeze", words), f"seed {seed}: {' '.join(words)}"


@needs("hsqueeze")
def test_same_files(tmp_path: Path) -> None:
    """The cluster before and after is saved alike."""
    for seed in range(SEED, SEED + CASES // 5):
        rng = Random(seed)
        taste = Taste(nodes=rng.randint(3, 8), templates=("rbd",), uniform=True, per_node=1.5)
        source = saved(tmp_path / "cluster.data", random_text(rng, taste))
        words = ["-t", source, "-S"]
        mine, other = tmp_path / "mine", tmp_path / "theirs"
        told = ours("hsqueeze", hsqueeze.OPTIONS, hsqueeze.squeeze, [*words, str(mine)])
        assert told == theirs("hsqueeze", [*words, str(other)]), f"seed {seed}"
        for ending in ("original", "squeezed"):
            texts = [Path(f"{path}.{ending}").read_text() for path in (mine, other)]
            assert texts[0] == texts[1], f"seed {seed}: {ending}"


@needs("hsqueeze")
def test_same_jobs(tmp_path: Path) -> None:
    """With -X both submit the same jobs, but for who asked and why; Debian's takes its time."""
    for seed in range(SEED, SEED + 2):
        rng = Random(seed)
        taste = Taste(nodes=rng.randint(3, 8), templates=("rbd",), uniform=True, per_node=1.5)
        cluster = parse_cluster(random_text(rng, taste))
        told, jobs = [], []
        for run in (partial(ours, work=hsqueeze.squeeze, options=hsqueeze.OPTIONS), theirs):
            answering = Answering(cluster, "kvm" if seed % 2 else "xen-pvm")
            with serving(answering, tmp_path / "socket") as socket:
                output, status = run("hsqueeze", words=[f"-L{socket}", "-X"])
            told.append((status, nodes_of(output)))
            jobs.append(
                [[[bare(op) for op in job] for job in some] for some in answering.submitted]
            )
        assert told[0] == told[1], f"seed {seed}"
        assert jobs[0] == jobs[1], f"seed {seed}"


def nodes_of(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.endswith(".x") and line[0] != " "]


def bare(opcode: dict[str, Any]) -> dict[str, Any]:
    return {
        k: v for k, v in opcode.items() if k not in {"reason", "comment", "priority", "depends"}
    }
