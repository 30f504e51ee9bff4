"""``gnt-cluster epo``: instances off, nodes off, and all on again in the other order."""

from typing import Any

import pytest

from coordinator.cli import epo
from coordinator.cli.epo import Affected, to_switch
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


@pytest.fixture
def asked(coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what was asked that changes something, in order; nodes answer at the second look."""
    order: list[Any] = []
    looks = iter((None, 8))
    monkeypatch.setattr(epo, "POLL_S", 0.0)
    whole = coordinator.methods["Query"]
    submit = coordinator.methods["SubmitJob"]

    def query(what: str, fields: list[str], condition: Any) -> Any:
        rows: list[list[Any]] = []
        if what == "node" and "pinst_list" in fields:
            rows = [
                ["alpha", True, ["web1"], [], None, False],
                ["beta", False, ["web2"], ["web1"], True, False],
                ["gamma", False, ["web4"], [], False, False],
            ]
        elif what == "node" and "ctotal" in fields:
            rows = [["beta", next(looks, 8)]]
        elif what == "instance":
            rows = [["web1", "up"], ["web2", "up"], ["web3", "up"], ["web4", "down"]]
        else:
            return whole(what, fields, condition)
        width = len(fields)
        return {
            "fields": [{"name": f, "kind": "other", "title": f, "doc": f} for f in fields],
            "data": [[[0, value] for value in (*row, None, None)[:width]] for row in rows],
        }

    def note(job: Any) -> Any:
        order.append((job[0]["OP_ID"], job[0].get("instance_name") or job[0].get("node_names")))
        return submit(job)

    coordinator.methods |= {
        "Query": query,
        "SubmitJob": note,
        "SubmitManyJobs": lambda jobs: [[True, note(job)] for job in jobs],
        "SetWatcherPause": lambda until: order.append(("pause", until is not None)),
    }
    coordinator.script_job()
    return order


def test_instances_are_stopped_before_their_nodes_are_switched_off(
    run: Run, asked: list[Any]
) -> None:
    ran = run("gnt-cluster epo -f --all")
    assert ran.code == 0, ran.err
    assert asked == [
        ("pause", True),
        ("OP_INSTANCE_SHUTDOWN", "web1"),
        ("OP_INSTANCE_SHUTDOWN", "web2"),
        ("OP_OOB_COMMAND", ["beta"]),
    ]
    assert "alpha is the master, and the last one: switch it off by hand" in ran.out
    assert "gamma is off already" in ran.out
    assert "The watcher starts nothing for a day" in ran.out


def test_instances_that_cannot_be_stopped_keep_their_nodes_on(
    run: Run, asked: list[Any], coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(
        ends="error", failure={"code": "node-failure", "message": "No.", "detail": {}}
    )
    assert run("gnt-cluster epo -f --all").code
    assert "OP_OOB_COMMAND" not in [what for what, _ in asked]


def test_instances_are_started_when_all_nodes_answer(run: Run, asked: list[Any]) -> None:
    ran = run("gnt-cluster epo -f --all --on")
    assert ran.code == 0, ran.err
    assert asked[:2] == [("OP_OOB_COMMAND", ["gamma"]), ("pause", False)]
    assert {what for what, _ in asked[2:]} == {"OP_INSTANCE_STARTUP"}
    assert "Waits for beta." in ran.out


def test_the_master_goes_with_the_whole_cluster_only(run: Run, asked: list[Any]) -> None:
    ran = run("gnt-cluster epo -f alpha")
    assert ran.code == 4
    assert "alpha is the master; move the mastership" in ran.err
    for words in ("", "--all alpha", "--groups --all"):
        ran = run(f"gnt-cluster epo -f {words}")
        assert ran.code == 2
        assert "Name nodes, or groups with --groups, or say --all" in ran.err
    assert run("gnt-cluster epo -f nowhere").code == 3
    assert asked == []


def test_what_cannot_be_switched_is_told() -> None:
    bare = Affected(
        name="beta", master=False, pinst_list=[], sinst_list=[], powered=None, offline=False
    )
    switched, told = to_switch([bare, bare._replace(powered=True)], on=False)
    assert switched == ["beta"]
    assert told == ["Nothing switches node beta, which has no oob_program."]
    switched, told = to_switch([bare._replace(powered=False, offline=True)], on=True)
    assert (switched, told) == ([], ["Node beta is marked offline, and left as it is."])
