"""``gnt-instance why`` says how an instance is, what works on it, and what to do."""

import json
import time
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

NOW = 1_000_000.0
ROW = {
    "name": "web1", "status": "running", "admin_state": "up", "pnode": "beta", "snodes": [],
    "disk_template": "sharedfile", "guest_state": "running", "maybe_on": [], "disk.findings": [],
}  # fmt: skip
JOB = {
    "id": 7, "status": "waiting", "ops": [{"OP_ID": "OP_X", "instance_name": "web1"}],
    "summary": ["INSTANCE_STARTUP(web1)"], "waits": "", "end_ts": None, "opfailure": [None],
}  # fmt: skip


class Told:
    """What the coordinator has; ``hear`` answers its queries."""

    def __init__(self, coordinator: ScriptedCoordinator) -> None:
        self.row: dict[str, Any] = dict(ROW)
        self.jobs: list[dict[str, Any]] = []
        self.locks: list[dict[str, Any]] = []
        self.settings: list[Any] = [None, False]
        self.asked: list[Any] = []
        coordinator.methods |= {"Query": self.query, "QueryConfigValues": lambda _: self.settings}

    def query(self, what: str, fields: list[str], condition: Any) -> Any:
        self.asked.append((what, condition))
        rows = {"instance": [self.row], "job": self.jobs, "lock": self.locks}[what]
        names = [{"name": name, "title": name, "kind": "other", "doc": ""} for name in fields]
        return {"fields": names, "data": [[[0, row.get(name)] for name in fields] for row in rows]}


@pytest.fixture
def told(coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(time, "time", lambda: NOW)
    return Told(coordinator)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["runs on beta, as it should"]),
        ({"guest_state": "paused, as what it wrote found no room"}, ["stands still on beta"]),
        ({"guest_state": "paused, as it was started so"}, ["as it was started paused"]),
        ({"status": "ADMIN_down"}, ["stopped, as was ordered", "gnt-instance startup web1"]),
        (
            {"status": "ADMIN_down", "forthcoming": True},
            ["room is kept on beta", "gnt-instance add --commit web1"],
        ),
        ({"status": "ADMIN_offline"}, ["gnt-instance modify --online web1"]),
        ({"status": "ERROR_down"}, ["should run on beta, and does not", "The watcher starts it"]),
        ({"status": "ERROR_up"}, ["gnt-instance shutdown web1"]),
        ({"status": "ERROR_wrongnode"}, ["gnt-instance migrate --cleanup web1"]),
        ({"status": "ERROR_nodedown"}, ["gnt-node modify --offline=yes beta", "on another node"]),
        ({"status": "ERROR_nodeoffline", "snodes": ["gamma"]}, ["web1” starts it on gamma"]),
        ({"status": "ERROR_nodeoffline", "disk_template": "plain"}, ["on that node alone"]),
        ({"maybe_on": ["beta", "gamma"]}, ["whether it is on beta or gamma"]),
        (
            {"disk.findings": ["", "has lost a volume: on beta"]},
            ["as it should.\nIts disk 1 has lost a volume: on beta.\n"],
        ),
    ],
)  # fmt: skip
def test_how_it_is_and_what_to_do_is_said(
    run: Run, told: Told, changes: dict[str, Any], expected: list[str]
) -> None:
    told.row |= changes
    ran = run("gnt-instance why web1")
    assert (ran.code, ran.err) == (0, "")
    for words in expected:
        assert words in ran.out
    assert ("The watcher" in ran.out) is (changes.get("status") == "ERROR_down")


def test_a_job_is_named_with_what_it_waits_for(run: Run, told: Told) -> None:
    told.jobs = [JOB | {"waits": "node beta, held by job 3"}]
    assert (
        "Job 7 (INSTANCE_STARTUP(web1)) is waiting; it waits for node beta, held by job 3.\n"
        in run("gnt-instance why web1").out
    )


def test_a_job_that_has_its_lock_is_found_whatever_it_is_called(run: Run, told: Told) -> None:
    evacuation = {"OP_ID": "OP_NODE_EVACUATE", "node_name": "beta"}
    told.jobs = [JOB | {"id": n, "ops": [evacuation], "summary": [f"N{n}"]} for n in (7, 8, 9)]
    told.locks = [
        {"name": "instance/web1", "owner": ["job 7"], "pending": [["exclusive", ["job 8"]]]},
        {"name": "instance/web2", "owner": ["job 9"], "pending": []},
    ]
    ran = run("gnt-instance why --json web1")
    assert json.loads(ran.out)["jobs"] == [7, 8]


def test_the_job_that_failed_last_explains_what_is_amiss(run: Run, told: Told) -> None:
    told.row["status"] = "ERROR_down"
    failed = JOB | {"status": "error", "end_ts": [NOW - 200, 0]}
    told.jobs = [
        failed | {"id": 5, "end_ts": [NOW - 400, 0], "opfailure": [{"message": "Older."}]},
        failed | {"id": 6, "opfailure": [None, {"message": "No kernel /boot/x."}]},
    ]
    ran = run("gnt-instance why web1")
    assert "Job 6 (INSTANCE_STARTUP(web1)) failed 3 minutes ago: No kernel /boot/x." in ran.out
    assert "Older" not in ran.out
    told.row["status"] = "running"
    assert "No kernel" not in run("gnt-instance why web1").out


def test_who_does_not_start_it_is_said(run: Run, told: Told) -> None:
    told.row["status"] = "ERROR_down"
    told.settings = [NOW + 600, False]
    assert "pauses for another 10 minutes" in run("gnt-instance why web1").out
    told.settings = [NOW - 600, True]
    assert "queue is drained" in run("gnt-instance why web1").out
    told.jobs = [JOB]
    assert "drained" not in run("gnt-instance why web1").out


def test_an_instance_that_does_not_exist_is_refused(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    assert run("gnt-instance why nobody").code == 3
    ran = run("gnt-instance why mail")
    assert ran.code == 0, ran.err
    assert "The node of instance mail, gamma, is marked offline" in ran.out
