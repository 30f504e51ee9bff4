"""Debian's harep repairs instances of ours, by the jobs and tags that it is made for."""

import subprocess
from pathlib import Path

import pytest

from common.model.job import Status
from tests.diff.both import find, needs
from tests.diff.debian_ganeti import Served, needs_ganeti, served_cluster
from tests.sim.settings import mirrored

pytestmark = [needs_ganeti, needs("harep")]


def harep(served: Served) -> str:
    path = find("harep")
    assert path is not None
    socket = served.root / "var/run/ganeti/socket/ganeti-query"
    ran = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [path, f"-L{socket}", "--job-delay=0"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("dead", "repair", "opcode", "homes_after"),
    [
        ("gamma", "ArFixStorage", "OP_INSTANCE_REPLACE_DISKS", ["beta", "alpha"]),
        ("beta", "ArFailover", "OP_INSTANCE_FAILOVER", ["gamma", "beta"]),
    ],
)
def test_what_has_lost_a_node_is_repaired(
    tmp_path: Path, dead: str, repair: str, opcode: str, homes_after: list[str]
) -> None:
    with served_cluster(tmp_path) as served:
        cluster = served.cluster
        served.wait_for(cluster.run(mirrored("web1", "beta", "gamma")))
        tag = "ganeti:watcher:autorepair:failover"
        assert served.gnt("gnt-instance", "add-tags", "web1", tag).code == 0
        served.wait_for(cluster.lose_power(dead))
        offline = served.gnt("gnt-node", "modify", "-O", "yes", "--auto-promote", "--force", dead)
        assert offline.code == 0, offline.text
        assert f"Executing {repair} repair on web1" in harep(served)
        for number, job in cluster.state.jobs.items():
            if not job.status.is_final:
                served.wait_for(cluster.finished(number))
        (repaired,) = [
            job
            for job in cluster.state.jobs.values()
            if opcode in [op.input["OP_ID"] for op in job.ops]
        ]
        assert repaired.status is Status.SUCCESS, repaired.ops[-1].failure
        homes = cluster.config.nodes_of(cluster.config.instance("web1"))
        assert [cluster.config.nodes[uuid].name for uuid in homes] == homes_after
