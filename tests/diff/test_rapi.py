"""hbal over the remote API: the same cluster read as Debian's reads it."""

import contextlib
import io
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.record import replace
from coordinator.htools import hbal
from coordinator.htools.program import run
from coordinator.htools.text import parse_cluster
from tests.diff.both import CASES, SEED, needs, ours, theirs
from tests.diff.luxi_server import Answering
from tests.diff.rapi_server import resources, serving, write_certificate
from tests.diff.text_clusters import Taste, random_text

TEXT = """g|uuid-g|preferred||

a.x|16384|512|15000|300000|290000|8|M|uuid-g|1||N|0|1|1.0
b.x|16384|512|15872|300000|300000|8|N|uuid-g|1||N|0|1|1.0

i.x|500|5000|1|running|Y|a.x||rbd||1|-|N
j.x|372|5000|1|ADMIN_down|Y|a.x||rbd||1|-|N

"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rapi") / "server.pem"
    write_certificate(path)
    return path


def answers_of(text: str, hypervisor: str = "xen-pvm") -> dict[str, Any]:
    return resources(Answering(parse_cluster(text), hypervisor))


def errors_of(*words: str) -> tuple[str, int]:
    errors = io.StringIO()
    silence = contextlib.redirect_stdout(io.StringIO())
    with contextlib.redirect_stderr(errors), silence, pytest.raises(SystemExit) as ended:
        run("hbal", hbal.OPTIONS, hbal.balance, words)
    assert isinstance(ended.value.code, int)
    return errors.getvalue(), ended.value.code


@needs("hbal")
def test_same_cluster(certificate: Path, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + CASES):
        rng = Random(seed)
        # Debian's does not look at what the API says of the speed of processors.
        taste = replace(Taste.random(rng), speeds=False)
        answers = answers_of(random_text(rng, taste), rng.choice(("kvm", "xen-pvm")))
        with serving(certificate, answers) as (url, _):
            words = ["-m", url, "-C", "-l", "3", "-S"]
            words += rng.choice(([], ["--static-kvm-node-memory=0"]))
            group = ["-G", "group-0"] if taste.groups > 1 else []
            mine = [*words, str(tmp_path / "mine"), *group]
            told = ours("hbal", hbal.OPTIONS, hbal.balance, [*mine, "--strict-compat"])
            assert told == theirs("hbal", [*words, str(tmp_path / "theirs"), *group]), seed
        saved = [tmp_path / f"{which}.original" for which in ("mine", "theirs")]
        if saved[0].exists():
            assert saved[0].read_text() == saved[1].read_text(), f"seed {seed}"


def test_certificate_is_checked_if_asked_for(certificate: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    write_certificate(other)
    with serving(certificate, answers_of(TEXT)) as (url, _):
        assert errors_of("-m", url, f"--rapi-ca={certificate}")[1] == 0
        assert errors_of("-m", url)[1] == 0
        told, code = errors_of("-m", url, f"--rapi-ca={other}")
        assert code == 1
        assert "not to be trusted" in told
        assert errors_of("-m", url, "--rapi-ca=/nowhere")[1] == 1


def test_user_of_the_address_is_sent(certificate: Path) -> None:
    with serving(certificate, answers_of(TEXT)) as (url, server):
        assert errors_of("-m", url.replace("//", "//me:se%3Acret@"))[1] == 0
        assert {told for _, told in server.asked} == {"Basic bWU6c2U6Y3JldA=="}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"/2/info": 500}, "500"),
        ({"/2/info": 401}, "USER:PASSWORD"),
        ({"/2/groups?bulk=1": "{"}, "no JSON text"),
        ({"/2/groups?bulk=1": []}, "KeyError: 'uuid-g'"),
        ({"/2/nodes?bulk=1": [{}]}, "not what the remote API says"),
        ({"/2/instances?bulk=1": {"a": 1}}, "not what the remote API says"),
        ({"/2/info": "[]"}, "not what the remote API says"),
    ],
)
def test_bad_answers_are_named(certificate: Path, changes: dict[str, Any], said: str) -> None:
    with serving(certificate, answers_of(TEXT) | changes) as (url, _):
        told, code = errors_of("-m", url)
        assert code == 1
        assert said in told
        assert told.startswith("Error: failed to load data, aborting: ")


@pytest.mark.parametrize("address", ["http://", "https://:1", "ftp://a.x", "https://a.x:99999"])
def test_bad_addresses_are_refused(address: str) -> None:
    told, code = errors_of("-m", address)
    assert code == 1
    assert "is no address of a remote API" in told


def test_nobody_there() -> None:
    told, code = errors_of("-m", "https://127.0.0.1:1")
    assert code == 1
    assert "refused" in told
