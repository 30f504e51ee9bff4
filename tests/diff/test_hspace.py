"""hspace: the same figures and exit status as Debian's."""

import contextlib
import io
import subprocess
from pathlib import Path
from random import Random

import pytest

from common.record import replace
from coordinator.htools import hspace
from coordinator.htools.program import run
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, find, needs, ours, saved, theirs
from tests.diff.text_clusters import Taste, random_text

SWITCHES = (
    ("--accept-existing-errors",), ("--max-cpu=2",), ("--max-cpu=0.7",), ("--min-disk=0.3",),
    ("-l", "5"), ("-l", "17"), ("-O", "n1.x"), ("--spindle-use=2",), ("--spindle-use=0",),
    ("--machine-readable=no",), ("-q",),
)  # fmt: skip
# n4 is offline with an instance that has nowhere to go; the others have room.
LOST_NODE = """\
default|u1|preferred||

n1|259940|512|259428|2097152|1509598|36|N|u1|16||N|0|0|1.0
n4|524288|512|376584|1017595|140150|32|Y|u1|16||N|0|0|1.0
n5|262144|512|261632|2097152|1540352|36|N|u1|8||N|0|0|1.0

i4|147192|497536|4|running|Y|n4||plain||1|1|N

"""
TEMPLATES = ("drbd", "drbd", "drbd", "plain", "sharedfile", "diskless", "rbd", "file", "blockdev")


def random_taste(rng: Random) -> Taste:
    """Not too full, since nothing is placed where N+1 fails already."""
    taste = Taste.random(rng, 7)
    is_tight = taste.tight and rng.random() < 0.3
    return replace(taste, per_node=rng.choice((0, 0.5, 1.5)), tight=is_tight, forthcoming=0)


def random_words(rng: Random) -> list[str]:
    words: list[str] = []
    for switch in SWITCHES:
        words += switch if rng.random() < 0.12 else ()
    if rng.random() < 0.4:
        words.append("--no-capacity-checks")
    if rng.random() < 0.75:
        words.append("--machine-readable")
    if rng.random() < 0.8:
        words.append(f"--disk-template={rng.choice(TEMPLATES)}")
    disk, memory = rng.choice((20, 50)), rng.choice((1000, 2048, 3000))
    spindles = rng.choice(("", ",2"))
    words.append(f"--standard-alloc={disk}g,{memory},{rng.randint(1, 3)}{spindles}")
    disk, memory = rng.choice((30, 100)), rng.choice((1500, 4096, 8000))
    words.append(f"--tiered-alloc={disk}g,{memory},{rng.choice((1, 2, 6))}{spindles}")
    return words


def is_split(text: str) -> bool:
    """Whether a mirrored instance is in two groups; then Debian's dies of looking at groups."""
    cluster = parse_cluster(text)
    return any(len({cluster.nodes[home].group for home in i.homes}) > 1 for i in cluster.instances)


@needs("hspace")
def test_same_room(tmp_path: Path) -> None:
    cases = max(1, CASES // 2)  # each takes either program up to seconds
    print(f"{cases} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + cases):
        rng = Random(seed)
        text = random_text(rng, random_taste(rng))
        words = ["-t", saved(tmp_path / "cluster.data", text), *random_words(rng)]
        if rng.random() < 0.15 and not is_split(text):
            words.append("--independent-groups")
        told = ours("hspace", hspace.OPTIONS, hspace.measure, words)
        assert told == theirs("hspace", words), f"seed {seed}: {' '.join(words)}"


@needs("hspace")
def test_same_room_on_simulated_clusters() -> None:
    for spec in ("p,4,200g,16g,8", "p,5,1t,32g,4,3", "a,6,100g,8g,16,10,True", "u,3,100g,8g,16"):
        for template in ("drbd", "plain", "sharedfile"):
            words = [f"--simulate={spec}", f"--disk-template={template}", "--machine-readable"]
            words += ["--standard-alloc=20g,1500,1", "--tiered-alloc=60g,3g,3"]
            told = ours("hspace", hspace.OPTIONS, hspace.measure, words)
            assert told == theirs("hspace", words), " ".join(words)


@needs("hspace")
def test_same_room_beside_what_an_offline_node_has_lost(tmp_path: Path) -> None:
    words = ["-t", saved(tmp_path / "cluster.data", LOST_NODE), "-l", "6", "--machine-readable"]
    for switches in (["--independent-groups"], ["--accept"], ["--accept", "--independent-groups"]):
        told = ours("hspace", hspace.OPTIONS, hspace.measure, [*words, *switches])
        assert told == theirs("hspace", [*words, *switches]), switches
        assert ("HTS_ALLOC_INSTANCES=6" in told[0]) is ("--accept" in switches)


@needs("hspace")
def test_same_room_in_groups_that_are_bad_already(tmp_path: Path) -> None:
    """Each group stands for itself, and is filled although it cannot be emptied."""
    print(f"{CASES} clusters from HTOOLS_SEED={SEED}")  # noqa: T201
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        text = random_text(rng, replace(random_taste(rng), nodes=rng.randint(2, 4), per_node=1.5))
        if is_split(text):
            continue
        words = ["-t", saved(tmp_path / "cluster.data", text), "--accept-existing-errors"]
        words += ["--independent-groups", "-O", "n1.x", "-l", "4", *random_words(rng)]
        told = ours("hspace", hspace.OPTIONS, hspace.measure, words)
        assert told == theirs("hspace", words), f"seed {seed}: {' '.join(words)}"


@needs("hspace")
def test_same_details(tmp_path: Path) -> None:
    """What goes to standard error: how things stand, which groups are bad, what went where."""
    program = find("hspace")
    assert program is not None
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        text = random_text(rng, replace(random_taste(rng), tight=rng.random() < 0.5))
        if is_split(text):
            continue
        words = ["-t", saved(tmp_path / "cluster.data", text), "-l", "3", *random_words(rng)]
        words += [rng.choice(("-v", "-vv", "-vvv")), *rng.choice(([], ["-p"]))]
        words += rng.choice(([], ["--independent-groups"]))
        errors = io.StringIO()
        silence = contextlib.redirect_stdout(io.StringIO())
        with contextlib.redirect_stderr(errors), silence, pytest.raises(SystemExit):
            run("hspace", hspace.OPTIONS, hspace.measure, words)
        done = subprocess.run(  # noqa: TID251 - the other program, and nothing else runs meanwhile
            [program, *words], capture_output=True, text=True, timeout=120, check=False
        )
        assert errors.getvalue() == done.stderr, f"seed {seed}: {' '.join(words)}"


@needs("hspace")
def test_same_room_where_shrinking_never_helps() -> None:
    """Thousands of sizes are tried, and none fits for want of spindles."""
    words = ["--simulate=p,4,100g,8g,4,2,True", "-l", "4", "--disk-template=plain"]
    words.append("--tiered-alloc=200g,12g,8,12")
    told = ours("hspace", hspace.OPTIONS, hspace.measure, words)
    assert told == theirs("hspace", words)


@needs("hspace")
def test_same_cluster_is_saved(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + 5):
        rng = Random(seed)
        taste = Taste(nodes=rng.randint(3, 6), per_node=0.5)
        words = ["-t", saved(tmp_path / "cluster.data", random_text(rng, taste))]
        words += ["--standard-alloc=20g,1500,1", "--tiered-alloc=60g,3g,3", "--disk-template=drbd"]
        saves = [[*words, "-S", str(tmp_path / who)] for who in ("ours", "theirs")]
        told = ours("hspace", hspace.OPTIONS, hspace.measure, saves[0])
        assert told == theirs("hspace", saves[1])
        for ending in ("tiered", "standard"):
            mine = (tmp_path / f"ours.{ending}").read_text(encoding="utf-8")
            assert mine == (tmp_path / f"theirs.{ending}").read_text(encoding="utf-8"), seed


@needs("hspace")
def test_same_exit_status_of_bad_input(tmp_path: Path) -> None:
    garbage = saved(tmp_path / "garbage", "\x01|\n|||\n\n\n\nx")
    good = ["--simulate=p,3,100g,8g,4", "-l", "9"]
    for words in (
        ["-t", garbage],
        ["-t", str(tmp_path / "missing")],
        [],
        [*good, "-t", garbage],
        [*good, "--unknown"],
        [*good, "--disk-template=nonsense"],
        [*good, "--standard-alloc=1,2"],
        [*good, "--standard-alloc=x,y,z"],
        [*good, "--tiered-alloc=1g,1g,many"],
        [*good, "--max-cpu=-1"],
        [*good, "--max-cpu=ape"],
        [*good, "--min-disk=ape"],
        [*good, "-l", "many"],
        [*good, "--spindle-use=-1"],
        [*good, "argument"],
        [*good, "-O", "nobody"],
        ["--simulate=x,3,100g,8g,4"],
        ["--simulate=p,3"],
        ["--simulate=p,1,100g,8g,4", "--disk-template=drbd"],
        ["--simulate=p,0,100g,8g,4"],
        ["--simulate=p,3,0,0,0"],
        [*good, "-S", str(tmp_path / "no" / "such")],
        ["-L", "-I", garbage],
    ):
        told = ours("hspace", hspace.OPTIONS, hspace.measure, words)
        assert told[1] == theirs("hspace", words)[1], words
