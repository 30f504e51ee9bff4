"""What operators do with jobs and with the queue."""

import dataclasses
import json
from typing import Any

from msgspec.structs import replace

from common.luxi.failures import JobLost
from common.model.group import Group
from common.model.job import Status
from common.model.stamp import Stamp
from common.names import GroupName, JobId
from coordinator.state.state import state_of
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator
from tests.unit.queries.cluster import CLUSTER, GROUP, JOBS


def test_the_queue_is_drained(run: Run, coordinator: ScriptedCoordinator) -> None:
    flags: list[bool] = []
    coordinator.methods["SetDrainFlag"] = flags.append
    assert run("gnt-cluster queue drain").code == 0
    assert run("gnt-cluster queue undrain").code == 0
    assert flags == [True, False]
    assert run("gnt-cluster queue info").out == "The drain flag is unset.\n"
    assert json.loads(run("gnt-cluster queue info --json").out) == {"drained": False}


def test_jobs_are_shown(run: Run, coordinator: ScriptedCoordinator) -> None:
    assert (
        run("gnt-job info 2").out
        == """\
Job ID: 2
Status: error
Received: 1970-01-01 00:00:20.500000
Processing start: 1970-01-01 00:00:21.000000
Processing end: 1970-01-01 00:00:22.000000
Opcodes:
  - NODE_ADD(delta):
      Status: error
      Waiting since: -
      Running since: -
      Ended: -
      Priority: 0
      Input fields:
        node_name: delta
        token: <secret>
      Result: It is there.
      Execution log:
        - Thu Jan  1 00:00:21 1970 looking
"""
    )
    ran = run("gnt-job info 3 77")
    assert ran.code == 3
    assert "Job ID: 3" in ran.out
    assert ran.err == "Failure: There is no job 77.\n"
    assert json.loads(run("gnt-job info 3 --json").out)[0]["status"] == "queued"


def test_jobs_are_watched_and_waited_for(run: Run, coordinator: ScriptedCoordinator) -> None:
    log = [["running"], [[1, [0, 5], "message", "hello"]]]
    coordinator.script_job(log)
    assert run("gnt-job watch 5") == (0, "Thu Jan  1 00:00:00 1970 hello\n", "")
    coordinator.script_job(log)
    assert run("gnt-job wait 5") == (0, "", "")
    failure = {"code": "conflict", "message": "It is there.", "detail": {}}
    coordinator.script_job(ends="error", failure=failure)
    assert run("gnt-job wait 5") == (4, "", "Failure: It is there.\n")

    def lost(*_: object) -> None:
        raise JobLost("There is no job 5.")

    coordinator.methods["WaitForJobChange"] = lost
    assert run("gnt-job watch 5") == (3, "", "Failure: There is no job 5.\n")


def test_jobs_are_cancelled_and_archived(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.methods["CancelJob"] = lambda job: [job == 1, f"Job {job} heard."]
    assert run("gnt-job cancel 1") == (0, "Job 1 heard.\n", "")
    assert run("gnt-job cancel --yes-do-it 1") == (0, "Job 1 heard.\n", "")
    ran = run("gnt-job cancel 1 2 3")
    assert (ran.code, ran.out) == (1, "Job 1 heard.\nJob 2 heard.\nJob 3 heard.\n")
    coordinator.methods["ArchiveJob"] = lambda job: job == 1
    assert run("gnt-job archive 1") == (0, "Job 1 is archived.\n", "")
    assert run("gnt-job archive 2").code == 1


def test_jobs_are_chosen_by_how_far_they_are(run: Run, coordinator: ScriptedCoordinator) -> None:
    heard: list[Any] = []

    def hear(*told: Any) -> list[Any]:
        heard.append(told)
        return [True, "Heard."]

    coordinator.methods |= {"CancelJob": hear, "ChangeJobPriority": hear}
    assert run("gnt-job cancel --waiting --force").err == "Failure: There are no waiting jobs.\n"
    begun = replace(JOBS[2], id=JobId(4), ops=(replace(JOBS[2].ops[0], status=Status.WAITING),))
    state = state_of((CLUSTER, Group(uuid=GROUP, name=GroupName("default")), *JOBS, begun), Stamp())
    coordinator.source = dataclasses.replace(coordinator.source, state=state)
    for chosen, numbers in (("queued", [3]), ("waiting", [4]), ("pending", [3, 4])):
        heard.clear()
        assert run(f"gnt-job cancel --{chosen} --force").code == 0
        assert sorted(heard) == [(number,) for number in numbers]
    heard.clear()
    assert run("gnt-job change-priority --priority high --waiting -f").out == "Heard.\n"
    assert heard == [(4, -10)]


def test_jobs_are_not_chosen_unseen(run: Run, coordinator: ScriptedCoordinator) -> None:
    assert run("gnt-job cancel").code == 2
    assert run("gnt-job cancel --pending 1").code == 2
    assert run("gnt-job cancel --pending --queued").code == 2
    ran = run("gnt-job cancel --pending")
    assert ran.code == 13
    assert "queued TEST_DELAY(9)" in ran.err
    assert "--force" in ran.err


def test_why_tells_what_jobs_wait_for(run: Run, coordinator: ScriptedCoordinator) -> None:
    waits = {
        7: ["waiting", [["instance web1, held by job 3 (INSTANCE_MIGRATE(web1), running)", 200.0]]],
        8: ["success", []],
    }
    coordinator.methods["WhyJob"] = lambda number: waits[number]
    ran = run("gnt-job why 7 8")
    assert ran.out == (
        "Job 7 waits for instance web1, held by job 3 (INSTANCE_MIGRATE(web1), running), "
        "for 3 minutes now.\n"
        "Job 8 waits for nothing; its status is success.\n"
    )
    told = json.loads(run("gnt-job why --json 8").out)
    assert told == {"id": 8, "status": "success", "waits": []}


def test_priorities_are_changed_by_word_or_number(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    asked = []

    def change(number: int, priority: int) -> list[object]:
        asked.append((number, priority))
        return [True, f"Job {number} has priority {priority} now."]

    coordinator.methods["ChangeJobPriority"] = change
    assert run("gnt-job change-priority --priority high 7").out == "Job 7 has priority -10 now.\n"
    assert run("gnt-job change-priority --priority -3 7 8").code == 0
    assert asked == [(7, -10), (7, -3), (8, -3)]
    assert run("gnt-job change-priority --priority soon 7").code == 2


def test_autoarchive_goes_on_until_nothing_is_left_to_do(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    asked, answers = [], [[100, 20], [20, 0], [0, 0], [0, 4]]

    def archive(age_s: float, patience_s: float) -> list[int]:
        asked.append((age_s, patience_s))
        return answers.pop(0)

    coordinator.methods["AutoArchiveJobs"] = archive
    assert run("gnt-job autoarchive 2h").out == "Archived 120 jobs, 0 are left in sight.\n"
    assert {age_s for age_s, _ in asked} == {7200.0}
    assert json.loads(run("gnt-job autoarchive all --json").out) == {"archived": 0, "left": 4}
    assert asked[-1][0] == -1.0
