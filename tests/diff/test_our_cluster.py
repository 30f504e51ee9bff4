"""Debian's hbal and hinfo on the answers of our coordinator."""

import http.client
import re
import ssl
import subprocess
from collections.abc import Iterator

import pytest

from coordinator.htools.luxi_source import reported_by_luxi
from coordinator.htools.rapi_source import reported_by_rapi
from tests.diff.both import find, needs
from tests.diff.debian_ganeti import Served, needs_ganeti, served_cluster
from tests.support.rapi import rapi_process

pytestmark = [needs_ganeti, needs("hbal")]

GIBIBYTE = 1024


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Nodes with very different shares of one file system, most of which is full."""
    with served_cluster(tmp_path_factory.mktemp("ganeti")) as cluster:
        for name, node, size in (("one", "beta", 300), ("two", "beta", 300), ("six", "gamma", 9)):
            said = cluster.gnt(
                "gnt-instance", "add", "-t", "sharedfile", "--disk", f"0:size={size}G", "-B",
                "memory=1G", "-o", "noop", "--no-install", "-n", node, name,
            )  # fmt: skip
            assert said.code == 0, said.text
        yield cluster


@pytest.mark.parametrize("program", ["hbal", "hinfo"])
def test_nothing_of_an_ordinary_cluster_seems_lost(served: Served, program: str) -> None:
    path = find(program)
    assert path is not None
    socket = served.root / "var/run/ganeti/socket/ganeti-query"
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [path, f"-L{socket}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 nodes, 3 instances" in done.stdout
    assert "inconsistent" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def remote(served: Served) -> Iterator[str]:
    luxi = served.root / "var/run/ganeti/socket/ganeti-query"
    with rapi_process(served.root, luxi) as rapi:
        while read_status(rapi.port) != 200:
            pass
        yield f"https://127.0.0.1:{rapi.port}"


def read_status(port: int) -> int:
    connection = http.client.HTTPSConnection(
        "127.0.0.1",
        port,
        context=ssl._create_unverified_context(),
    )
    connection.request("GET", "/2/nodes")
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_remote_api_tells_what_the_socket_tells(served: Served, remote: str) -> None:
    socket = served.root / "var/run/ganeti/socket/ganeti-query"
    by_socket, is_kvm = reported_by_luxi(str(socket))
    by_api, is_kvm_too = reported_by_rapi(remote)
    for part in ("groups", "nodes", "instances", "tags", "policy"):
        assert getattr(by_api, part) == getattr(by_socket, part)
    assert is_kvm is is_kvm_too


def test_debians_hbal_reads_the_remote_api(remote: str) -> None:
    path = find("hbal")
    assert path is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [path, f"-m{remote}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 nodes, 3 instances" in done.stdout
    assert "inconsistent" not in done.stderr, done.stderr


def test_space_is_what_is_free_and_what_the_disks_of_a_node_take(served: Served) -> None:
    use_locking = False
    rows = served.ask("QueryNodes", [], ["name", "dtotal", "dfree"], use_locking)
    taken = {name: total - free for name, total, free in rows}
    assert taken == {"alpha": 0, "beta": 600 * GIBIBYTE, "gamma": 9 * GIBIBYTE}


def test_debians_hbal_moves_what_is_reserved_and_its_hspace_counts_with_it(served: Served) -> None:
    socket = f"-L{served.root / 'var/run/ganeti/socket/ganeti-query'}"
    names = [f"coming{number}" for number in range(4)]
    placed = _capacity(socket)
    for name in names:
        said = served.gnt(
            "gnt-instance", "add", "--forthcoming", "-t", "drbd", "--disk", "0:size=1G", "-B",
            "memory=8G", "-o", "noop", "-n", "beta:gamma", name,
        )  # fmt: skip
        assert said.code == 0, said.text
    assert _capacity(socket) < placed
    moved = _debians("hbal", socket, "-X")
    assert "3 nodes, 7 instances" in moved
    use_locking = False
    told = ["forthcoming", "pnode", "snodes"]
    rows = served.ask("QueryInstances", names, told, use_locking)
    assert all(forthcoming for forthcoming, _, _ in rows)
    assert len({(home, *seconds) for _, home, seconds in rows}) > 1, moved
    for name in names:
        assert served.gnt("gnt-instance", "remove", "-f", name).code == 0


def _capacity(socket: str) -> int:
    """Return how many more instances of the standard size Debian's hspace finds room for."""
    said = _debians("hspace", socket, "--standard-alloc=10g,10g,1", "--disk-template=drbd")
    found = re.findall("([0-9]+) instances allocated", said)
    assert found, said
    return int(found[-1])


def _debians(program: str, *words: str) -> str:
    path = find(program)
    assert path is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [path, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
