"""A guest whose disk two nodes mirror goes on while the disks below it fail, and is mended live."""

import re

from deploy.uml import faults
from deploy.uml.node import Node
from tests.lab.mirrored import NAME, Ledger
from tests.lab.stage import Stage, said, until

SLOW = "-D drbd:resync-rate=512,dynamic-resync=no"
USUAL = "-D drbd:resync-rate=default,dynamic-resync=default"


def test_it_goes_on_with_the_other_copy_when_its_disk_fails_and_gets_new_volumes_live(
    ledger: Ledger, stage: Stage
) -> None:
    home, _ = ledger.homes
    before = ledger.goes_on(home)
    process = ledger.process(home)
    faults.break_disk(home)
    try:
        ledger.goes_on(home)
        assert ledger.state == "degraded"
        told = said(stage.alpha, "gnt-cluster verify-disks")
        assert f"gnt-instance replace-disks --auto {NAME}" in told
    finally:
        faults.mend_disk(home)
    ledger.order("replace-disks --auto")
    ledger.goes_on(home)
    assert (ledger.state, ledger.process(home)) == ("whole", process)
    assert ledger.on_disk(home).whole_to >= before


def test_new_copies_are_made_though_the_coordinator_is_killed_at_every_step(
    ledger: Ledger, stage: Stage
) -> None:
    home, _ = ledger.homes
    job = submit(stage, f"replace-disks -s --submit {NAME}")
    killed = 0
    while (state := job_status(stage, job)) in ("running", "waiting", "queued"):
        steps = len(log_of(stage, job))
        if steps > killed:
            killed = steps
            stage.alpha.run("systemctl kill --kill-whom=main --signal=KILL gantry-coordinator")
            until(lambda: job_status(stage, job) != "", "the coordinator to be back")
    assert (state, killed > 3) == ("success", True)
    ledger.goes_on(home)
    assert ledger.state == "whole"


def test_a_new_secondary_node_that_dies_while_it_is_copied_to_costs_no_copy(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    ledger.order(f"replace-disks -n {stage.alpha.name}")
    stage.alpha.run(f"gnt-cluster modify {SLOW}")
    try:
        job = submit(stage, f"replace-disks -n {second.name} --submit {NAME}")
        until(lambda: is_copied_from(home), "the copying to begin")
        second.power_off()
        until(lambda: job_status(stage, job) in ("error", "success"), "the job to end", 240)
        assert job_status(stage, job) == "error"
    finally:
        stage.alpha.run(f"gnt-cluster modify {USUAL}")
        stage.power_on()
    ledger.goes_on(home)
    assert ledger.homes == (home, stage.alpha)
    ledger.order("activate-disks --wait-for-sync")
    stage.alpha.run(f"gnt-node remove-leftovers --force {second.name}")
    ledger.order(f"replace-disks -n {second.name}")
    assert ledger.homes == (home, second)


def submit(stage: Stage, command: str) -> int:
    """Submit a job; return its number."""
    words = said(stage.alpha, f"gnt-instance {command}")
    number = re.search(r"\d+", words)
    assert number
    return int(number[0])


def job_status(stage: Stage, job: int) -> str:
    """Return how a job is; nothing while there is no coordinator to be asked."""
    words = said(stage.alpha, f"gnt-job list --no-headers -o status {job}")
    return words.split()[0] if "exit 0" in words else ""


def log_of(stage: Stage, job: int) -> list[str]:
    """Return which steps a job has begun."""
    told = said(stage.alpha, f"gnt-job info {job}")
    return [line for line in told.splitlines() if " * " in line]


def is_copied_from(home: Node) -> bool:
    return "cs:SyncSource" in home.run("cat /proc/drbd")
