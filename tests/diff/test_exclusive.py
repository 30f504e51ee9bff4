"""Debian's commands and tools on a cluster of ours with exclusive storage."""

import subprocess
from collections.abc import Iterator

import pytest

from coordinator.htools.luxi_source import reported_by_luxi
from tests.diff.both import find, needs
from tests.diff.debian_ganeti import Served, needs_ganeti, served_cluster
from tests.sim.settings import with_exclusive_storage

pytestmark = [needs_ganeti, needs("hbal")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three physical volumes of 1000 MiB on each of three nodes; Debian's commands turn it on."""
    with served_cluster(tmp_path_factory.mktemp("ganeti")) as cluster:
        cluster.wait_for(with_exclusive_storage(cluster.cluster))
        said = cluster.gnt_all((
            "gnt-cluster modify --node-parameters exclusive_storage=false",
            "gnt-cluster modify --enabled-disk-templates plain,sharedfile,diskless",
            "gnt-group modify --node-parameters exclusive_storage=true default",
        ))  # fmt: skip
        assert [each.code for each in said] == [0, 0, 0], said
        yield cluster


def test_debians_commands_give_each_instance_its_own(served: Served) -> None:
    add = "gnt-instance add -t plain -o noop --no-install -B memory=128M"
    said = served.gnt_all((
        f"{add} --disk 0:size=64M,spindles=2 -n beta one",
        f"{add} --disk 0:size=64M,spindles=2 -I hail two",
        f"{add} --disk 0:size=64M -n gamma three",
        f"{add} --disk 0:size=64M,spindles=2 -n beta three",
        "gnt-instance modify --disk add:size=64M,spindles=1 one",
        "gnt-instance grow-disk one 1 32M",
        "gnt-instance info one",
        "gnt-instance list --no-headers -o disk.spindles,disk.spindles/1 one",
        "gnt-node list --no-headers --separator=: -o name,sptotal,spfree,ndp/exclusive_storage",
        "gnt-cluster verify",
        "gnt-node modify --node-parameters exclusive_storage=false beta",
    ))  # fmt: skip
    assert [each.code for each in said] == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1], said
    texts = [each.text for each in said]
    assert "say how many spindles disk 0 has for itself" in texts[2]
    assert "1 spindles left in the volume group gantry, and 2 spindles are needed" in texts[3]
    assert "spindles: 2" in texts[6]
    assert texts[7].split() == ["[2,", "1]", "1"]
    assert "beta:3:0:Y" in texts[8].split()
    assert "is set for the cluster or for a group" in texts[10]


@pytest.mark.parametrize("program", ["hbal", "hinfo"])
def test_debians_tools_see_the_spindles_that_ours_see(served: Served, program: str) -> None:
    socket = served.root / "var/run/ganeti/socket/ganeti-query"
    snapshot, _ = reported_by_luxi(str(socket))
    assert all(node.exclusive and node.spindles == 3 for node in snapshot.nodes)
    told = {one.name: one.disk_spindles for one in snapshot.instances}
    assert told == {"one": 3, "two": 2}
    path = find(program)
    assert path is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [path, f"-L{socket}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 nodes, 2 instances" in done.stdout
    assert "inconsistent" not in done.stderr, done.stderr
