"""A guest keeps its process whatever happens to the node daemon: restart, kill -9, upgrade."""

import shutil

from deploy.uml.install import lay_out
from deploy.uml.node import Node
from deploy.uml.place import SHARED
from tests.lab.guests import guest
from tests.lab.stage import Stage, answers, main_pid, said, until

DAEMON = "gantry-noded"
INSTALL_S = 1200.0  # whatever else the machine does


def test_a_guest_outlives_the_node_daemon(stage: Stage) -> None:
    node = stage.gamma
    with guest(stage, "survivor", "file", "-n gamma") as survivor:
        process = survivor.process(node)
        for happening in (restart, kill, upgrade):
            before = main_pid(node, DAEMON)
            happening(stage, node)
            until(lambda: is_another(node, before), "another node daemon")  # noqa: B023 -- called at once
            survivor.goes_on(node)
            assert survivor.process(node) == process
        assert "running" in said(stage.alpha, "gnt-instance list -o status survivor")
        assert survivor.written(node).starts == 1


def restart(_stage: Stage, node: Node) -> None:
    node.run(f"systemctl restart {DAEMON}")


def kill(_stage: Stage, node: Node) -> None:
    node.run(f"systemctl kill --kill-whom=main --signal=KILL {DAEMON}")


def upgrade(stage: Stage, node: Node) -> None:
    """Install a build that differs by a comment, as an operator does, without a network."""
    build = stage.lab.place.shared / "build"
    try:
        lay_out(build)
        with (build / "common/version.py").open("a") as file:
            file.write("\n# another build\n")
        there = f"{SHARED}/{build.name}"
        node.run(f"{there}/deploy/install --wheels {there}/wheels", timeout_s=INSTALL_S)
    finally:
        shutil.rmtree(build)
    installed = node.run("cat /opt/gantry/lib/python3.11/site-packages/common/version.py")
    assert "another build" in installed


def is_another(node: Node, process: int) -> bool:
    return answers(node, f"systemctl is-active {DAEMON}") and main_pid(node, DAEMON) != process
