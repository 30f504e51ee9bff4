"""Jobs that a command has submitted are followed, and how they end is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from common.errors import Bug, InvalidRequest
from common.luxi.client import Client, NoCoordinator
from common.luxi.failures import QueueDrained
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


def test_submitted_jobs_as_json(run: Run, submitted: list[list[dict[str, object]]]) -> None:
    assert json.loads(run("gnt-debug delay 1 --submit --json").out) == [{"job": 41}]


def test_progress_is_shown_while_the_job_runs(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(
        [["queued"], []],
        "nochange",
        [["running"], [[1, [0, 5], "message", "* creating disks"]]],
        [["running"], [[2, [60, 5], "message", "* starting"]]],
    )
    lock = "instance web1, held by job 7 (INSTANCE_MIGRATE(web1), running)"
    coordinator.methods["WhyJob"] = lambda number: ["queued", [[lock, 2.5]]]
    ran = run("gnt-debug delay 1")
    assert (
        ran.out
        == "Thu Jan  1 00:00:00 1970 * creating disks\nThu Jan  1 00:01:00 1970 * starting\n"
    )
    assert ran.err == f"Job 41 waits for {lock}, for 2 s now.\n"


def test_with_json_progress_stays_out_of_the_way(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job([["running"], [[1, [0, 5], "message", "hello"]]], result=7)
    ran = run("gnt-debug delay 1 --json")
    assert json.loads(ran.out) == [{"job": 41, "status": "success", "results": [7]}]
    assert "hello" in ran.err


def test_a_failed_job_tells_why_with_its_own_code(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    failure = {"code": "no-capacity", "message": "There is no room for web1.", "detail": {}}
    coordinator.script_job(ends="error", failure=failure)
    assert run("gnt-debug delay 1") == (6, "", "Failure: There is no room for web1.\n")
    ran = run("gnt-debug delay 1 --json")
    assert json.loads(ran.out)[0]["error"] == failure
    coordinator.script_job(ends="canceled")
    assert run("gnt-debug delay 1") == (10, "", "Failure: Job 43 was cancelled.\n")


def test_a_verification_that_found_something_fails(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=False)
    assert run("gnt-cluster verify").code == 1
    coordinator.script_job(result=True)
    assert run("gnt-cluster verify").code == 0


def test_a_dry_run_prints_the_steps(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=["make the disk", "start the guest"])
    ran = run("gnt-instance remove web1 --dry-run")
    assert ran == (0, "Would do:\n  * make the disk\n  * start the guest\n", "")
    assert coordinator.submitted[0][0]["dry_run"] is True


def test_findings_are_told_to_programs(run: Run, coordinator: ScriptedCoordinator) -> None:
    found = [{"severity": "ERROR", "code": "ENODEHV", "name": "beta", "message": "No."}]
    coordinator.script_job(result=found)
    ran = run("gnt-cluster verify --json")
    assert ran.code == 1
    assert json.loads(ran.out)[0]["results"] == [found]
    assert coordinator.submitted[0][0]["findings"] is True


def test_a_refused_dry_run_tells_why_and_nothing_else(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    failure = {"code": "no-capacity", "message": "There is no room.", "detail": {}}
    coordinator.script_job(ends="error", failure=failure, result=["OpPrereqError", ["No.", "x"]])
    for line in ("gnt-instance add -t diskless web1", "gnt-instance remove web1"):
        assert run(f"{line} --dry-run") == (6, "", "Failure: There is no room.\n")


def test_details_are_for_those_who_ask(run: Run, coordinator: ScriptedCoordinator) -> None:
    news = [["running"], [[1, [0, 5], "message", "chosen"], [2, [0, 5], "detail", "why"]]]
    for line in ("gnt-debug delay 1", "gnt-job watch 2"):
        coordinator.script_job(news)
        ran = run(line)
        assert "chosen" in ran.out
        assert "why" not in ran.out
        coordinator.script_job(news)
        assert "why" in run(f"{line} -v").out


def test_what_is_for_programs_is_not_spelled_out(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    told = {"disks": [["192.0.2.1", 4711, "a word", "", ""]], "x509_ca": "PEM"}
    coordinator.script_job([["running"], [[1, [0, 5], "remote-import", told]]])
    ran = run("gnt-job watch 2")
    assert "(for programs: remote-import)" in ran.out
    assert "a word" not in ran.out


def test_ctrl_c_leaves_the_job_running(run: Run, coordinator: ScriptedCoordinator,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    coordinator.script_job([["running"], [[1, [0, 0], "message", "on the way"]]])

    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("coordinator.cli.follow.format_log", interrupt)
    ran = run("gnt-debug delay 100")
    assert ran.code == 130
    assert "Job 41 goes on: “gnt-job watch 41” shows it again" in ran.err


def test_a_coordinator_that_dies_is_waited_for(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.cli.follow.RETRY_S", 0)
    coordinator.script_job([["running"], []], ConnectionError(), ConnectionError())
    ran = run("gnt-debug delay 1")
    assert ran == (0, "", "The coordinator is away; waiting for it to come back.\n")


def test_who_waits_for_a_coordinator_is_told_once_how_it_is_started(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("coordinator.cli.follow.RETRY_S", 0)
    monkeypatch.setattr("coordinator.cli.follow.HINT_S", 0)
    gone = NoCoordinator("Cannot reach it.", reason="refused")
    monkeypatch.setattr(
        "coordinator.cli.whereabouts.explain",
        lambda error: NoCoordinator(f"{error.message} Start."),
    )
    call, looks = Client.call, iter([gone, gone, gone])

    def away(client: Client, method: str, *args: Any, **named: Any) -> Any:
        if method == "WaitForJobChange" and (error := next(looks, None)):
            raise error
        return call(client, method, *args, **named)

    monkeypatch.setattr(Client, "call", away)
    coordinator.script_job()
    away_told = "The coordinator is away; waiting for it to come back.\n"
    assert run("gnt-debug delay 1") == (0, "", f"Cannot reach it. Start.\n{away_told}")


def test_a_coordinator_that_stays_away_is_given_up(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.cli.follow.RETRY_S", 0)
    monkeypatch.setattr("coordinator.cli.follow.PATIENCE_S", -1)
    coordinator.script_job(ConnectionError())
    ran = run("gnt-debug delay 1")
    assert ran.code == 8
    assert "is not lost" in ran.err


def test_a_refused_job_is_told(run: Run, coordinator: ScriptedCoordinator) -> None:
    def refuse(_: object) -> None:
        raise QueueDrained("The queue is closed.")

    coordinator.methods["SubmitJob"] = refuse
    assert run("gnt-debug delay 1") == (4, "", "Failure: The queue is closed.\n")


def test_a_lost_connection_leaves_open_whether_the_job_was_taken(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    def die(_: object) -> None:
        raise ConnectionError

    coordinator.methods["SubmitJob"] = die
    ran = run("gnt-debug delay 1")
    assert ran.code == 8
    assert "“gnt-job list” will tell" in ran.err


def test_of_several_jobs_every_failure_is_told(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.methods["SubmitManyJobs"] = lambda _: [[False, "No."], [False, "No, no."]]
    ran = run("gnt-instance startup web1 web2")
    assert (ran.code, ran.err) == (1, "Failure: No.\nFailure: No, no.\n")


def test_a_surprise_is_a_sentence(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.methods["SubmitJob"] = lambda _: {"no": "number"}
    ran = run("gnt-debug delay 1")
    assert ran.code == 70
    assert ran.err.startswith("Failure: This is a bug of Gantry: TypeError")
    assert ran.err.count("\n") == 1


def test_kinds_of_errors_have_exit_codes() -> None:
    assert (InvalidRequest.exit_code, Bug.exit_code) == (2, 70)


def test_jobs_that_come_of_jobs_are_followed_to_the_last_and_what_stayed_is_told(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    results = {
        41: {"jobs": [[True, 42]], "stayed": []},
        42: {"jobs": [[True, 43], [True, 44]], "stayed": ["web1"]},
        43: {"jobs": [], "stayed": []},
        44: None,
    }
    coordinator.script_job()
    asked: list[int] = []

    def query_jobs(ids: list[int], fields: list[str]) -> Any:
        if fields == ["summary"]:
            return [[f"NODE_MAINTAIN(gamma {number})"] for number in ids]
        asked.extend(ids)
        return [["success", [results[number]], [None]] for number in ids]

    coordinator.methods["QueryJobs"] = query_jobs
    ran = run("gnt-node maintain beta")
    assert asked == [41, 42, 43, 44]
    assert ran.code == 4
    assert "web1 could not move, so everything comes back" in ran.err
    ((order,),) = coordinator.submitted
    assert (order["OP_ID"], order["node_name"]) == ("OP_NODE_MAINTAIN", "beta")
