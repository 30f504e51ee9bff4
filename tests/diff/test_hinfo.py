"""hinfo: the same report as Debian's, wherever the cluster and its load are read from."""

import json
from pathlib import Path
from random import Random

import pytest

from coordinator.htools import hinfo
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, needs, ours, saved, theirs
from tests.diff.luxi_server import Answering
from tests.diff.messages import random_message
from tests.diff.rapi_server import resources, serving, write_certificate
from tests.diff.test_mond import DATA, TEXT
from tests.diff.text_clusters import Taste, random_text

pytestmark = needs("hinfo")

EMPTY = """g|u1|preferred||

a.x|4096|0|4096|10240|10240|8|M|u1


"""


def told(*words: str) -> tuple[str, int]:
    return ours("hinfo", hinfo.OPTIONS, hinfo.inform, words)


def test_same_information(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        path = saved(tmp_path / "cluster.data", random_text(rng, Taste.random(rng)))
        words = ["-t", path, *rng.choice(((), ("-vv",), ("-O", "n1.x"), ("--ignore-dynu",)))]
        assert told(*words) == theirs("hinfo", words), f"seed {seed}: {' '.join(words)}"


@pytest.mark.parametrize("more", ["-q", "-v", "-vvv"])
def test_same_of_an_empty_cluster(more: str, tmp_path: Path) -> None:
    words = ["-t", saved(tmp_path / "cluster.data", EMPTY), more]
    assert told(*words) == theirs("hinfo", words)


@pytest.mark.parametrize("what", DATA)
@pytest.mark.parametrize("switches", [(), ("--mond=no",), ("--mond",)])
def test_same_of_measured_load(what: str, switches: tuple[str, ...], tmp_path: Path) -> None:
    data = saved(tmp_path / "data", json.dumps(DATA[what]))
    words = ["-t", saved(tmp_path / "cluster", TEXT), f"--mond-data={data}", *switches]
    assert told(*words) == theirs("hinfo", words)


def test_same_over_the_remote_api(tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    write_certificate(certificate)
    with serving(certificate, resources(Answering(parse_cluster(TEXT), "kvm"))) as (url, _):
        words = ["-m", url, "-v"]
        assert told(*words) == theirs("hinfo", words)


def test_same_of_a_request_to_an_allocator(tmp_path: Path) -> None:
    """Of one without instances: Debian's counts every instance of a request twice."""
    for seed in range(SEED, SEED + min(CASES, 10)):
        message = random_message(Random(seed), "allocate")
        message["instances"] = {}
        words = ["-I", saved(tmp_path / "request.json", json.dumps(message)), "-v"]
        mine = told(*words)
        assert mine == theirs("hinfo", words), f"seed {seed}"
        assert mine[1] == 0
