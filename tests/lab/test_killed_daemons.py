"""``kill -9`` of every daemon in turn: systemd starts it again, and nothing is lost."""

import pytest

from tests.lab.stage import Stage, answers, main_pid, until


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
def test_a_killed_node_daemon_comes_back(stage: Stage, name: str) -> None:
    node = stage.lab.node(name)
    before = main_pid(node, "gantry-noded")
    node.run(f"kill -9 {before}")
    until(
        lambda: (
            answers(node, "systemctl is-active gantry-noded")
            and main_pid(node, "gantry-noded") != before
        ),
        "the node daemon",
    )


def test_a_killed_coordinator_comes_back_with_its_jobs(stage: Stage) -> None:
    jobs = stage.alpha.run("gnt-job list --no-headers -o id,status").split("\n")
    before = main_pid(stage.alpha, "gantry-coordinator")
    stage.alpha.run(f"kill -9 {before}")
    until(lambda: answers(stage.alpha, "gnt-job list"), "the coordinator")
    assert main_pid(stage.alpha, "gantry-coordinator") != before
    assert set(jobs) <= set(stage.alpha.run("gnt-job list --no-headers -o id,status").split("\n"))
