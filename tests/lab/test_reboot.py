"""A node reboots: its guests that should run are started again by the watcher, each once."""

import json
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.uml.node import Node
from tests.lab.stage import Stage, said, until

log = logging.getLogger(__name__)

ADD = "gnt-instance add -t diskless --no-nics -B memory=128,vcpus=1"
NAMES = ("wanted", "unwanted")  # one shall run, the other was stopped


@pytest.fixture
def home(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Node]:
    """Return the node with the guests."""
    node = stage.lab.node(request.param)
    for name in NAMES:
        stage.alpha.run(f"{ADD} -n {node.name} {name}")
    stage.alpha.run("gnt-instance shutdown --timeout 0 unwanted")
    yield node
    stage.power_on()
    for name in NAMES:
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {name}")


@pytest.mark.parametrize("home", ["gamma", "alpha"], indirect=True)  # any node; the master itself
def test_what_ran_runs_again_and_what_was_stopped_stays_so(stage: Stage, home: Node) -> None:
    boot, before = boot_id(home), starts(stage)
    said(home, "systemctl reboot")
    until(lambda: boot_id(home) not in (boot, ""), f"{home.name} to boot")
    until(lambda: is_as_wanted(stage), "the guest to run again")
    log.info("%s: the guest began %.1f s after the kernel", home.name, begin_of_guest(home))
    assert starts(stage) - before == {"INSTANCE_STARTUP(wanted)": 1}


@pytest.mark.parametrize("home", ["beta"], indirect=True)
def test_a_killed_guest_is_started_again_unless_the_watcher_pauses(
    stage: Stage, home: Node
) -> None:
    before = starts(stage)
    stage.alpha.run("gnt-cluster watcher pause 1h")
    (pid,) = guests(home)
    home.run(f"kill -9 {pid}")
    for line in ("systemctl start gantry-watcher", "gantry-watcher"):
        assert "exit 0" in said(stage.alpha, line)
    assert "ERROR_down" in said(stage.alpha, "gnt-instance list -o status wanted")
    assert starts(stage) == before
    stage.alpha.run("gnt-cluster watcher continue")
    until(lambda: is_as_wanted(stage), "the guest to run again")
    assert guests(home) != [pid]
    assert starts(stage) - before == {"INSTANCE_STARTUP(wanted)": 1}


def boot_id(node: Node) -> str:
    """Return what names this boot of a node; nothing while it is not up."""
    text = said(node, "cat /proc/sys/kernel/random/boot_id", seconds=60.0)
    return text.split()[0] if "exit 0" in text else ""


def is_as_wanted(stage: Stage) -> bool:
    told = said(stage.alpha, "gnt-instance list --no-headers --separator=, -o name,status")
    return {"wanted,running", "unwanted,ADMIN_down"} <= set(told.split("\n"))


def starts(stage: Stage) -> Counter[str]:
    """Count the jobs that were to start an instance, for each of them."""
    jobs = json.loads(stage.alpha.run("gnt-job list --json -o summary"))
    summaries = (summary for job in jobs for summary in job["summary"])
    return Counter(text for text in summaries if text.startswith("INSTANCE_STARTUP("))


def guests(node: Node) -> list[str]:
    """Return the numbers of the QEMU processes on a node."""
    return said(node, "pgrep qemu-system").split()[:-2]


def begin_of_guest(node: Node) -> float:
    """Return how long after the boot of its node a guest began, in seconds."""
    (pid,) = guests(node)
    return float(node.run(f"cut -d ' ' -f 22 /proc/{pid}/stat")) / 100
