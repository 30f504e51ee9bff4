"""hscan: the same table and the same files as Debian's, over LUXI and from the remote API."""

import contextlib
import io
from pathlib import Path
from random import Random

import pytest

from common.record import replace
from coordinator.htools import hscan
from coordinator.htools.program import run
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, needs, theirs
from tests.diff.luxi_server import Answering, serving
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    (), (), ("--static-kvm-node-memory=1000",), ("--static-kvm-node-memory=0",),
    ("--no-headers",), ("-p",), ("-p+idx,fqdn",),
)  # fmt: skip


def ours(words: list[str]) -> tuple[str, int]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit) as ended:
        run("hscan", hscan.OPTIONS, hscan.scan, words)
    assert isinstance(ended.value.code, int)
    return output.getvalue(), ended.value.code


@needs("hscan")
def test_same_scan(tmp_path: Path) -> None:
    print(f"{CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    mine, other = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    other.mkdir()
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        cluster = parse_cluster(random_text(rng, Taste.random(rng)))
        answering = Answering(cluster, rng.choice(("kvm", "xen-pvm")), rng.random() < 0.8)
        switch = rng.choice(SWITCHES)
        with serving(answering, tmp_path / "socket") as socket:
            words = [f"-L{socket}", *switch, "-d"]
            told = ours([*words, str(mine)])
            assert told == theirs("hscan", [*words, str(other)]), f"seed {seed}: {switch}"
        texts = [(path / "LOCAL.data").read_text() for path in (mine, other)]
        assert texts[0] == texts[1], f"seed {seed}"


@needs("hscan")
def test_same_scan_of_what_the_remote_api_says(tmp_path: Path) -> None:
    mine, other, told = tmp_path / "mine", tmp_path / "theirs", tmp_path / "told"
    for folder in (mine, other, told):
        folder.mkdir()
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        # Debian's does not read how fast processors are from there.
        taste = replace(Taste.random(rng), speeds=False)
        cluster = parse_cluster(random_text(rng, taste))
        answering = Answering(cluster, rng.choice(("kvm", "xen-pvm")), rng.random() < 0.8)
        answering.save_as_rapi(told)
        name = f"file://{told}"
        words = [*rng.choice(SWITCHES), name, f"{name}/none", "-d"]
        told_of = [ours([*words, str(mine)]), theirs("hscan", [*words, str(other)])]
        failed = [output.partition("Details:")[0] for output, _ in told_of]
        assert failed[0] == failed[1], f"seed {seed}"
        assert [status for _, status in told_of] == [2, 2]
        file = f"{name.replace('/', '_')}.data"
        assert (mine / file).read_text() == (other / file).read_text(), f"seed {seed}"
