"""``gnt-node power``, ``health`` and ``restricted-command``."""

import json

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

NODES = [[0, "alpha"], [0, {"powered": True}]], [[0, "beta"], [3, None]]


def test_whether_nodes_are_on_is_listed(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=list(NODES))
    ran = run("gnt-node power --oob-timeout 5 status")
    assert ran.code == 0
    assert ran.out.splitlines() == ["Node  Power", "alpha on", "beta  no oob_program"]
    ((order,),) = coordinator.submitted
    assert (order["OP_ID"], order["command"]) == ("OP_OOB_COMMAND", "power-status")
    assert (order["node_names"], order["timeout"]) == ([], 5)


def test_nodes_are_switched_on_without_a_question(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=[[[0, "beta"], [0, None]]])
    assert run("gnt-node power --power-delay 0 on beta").code == 0
    ((order,),) = coordinator.submitted
    assert (order["command"], order["power_delay"]) == ("power-on", 0)
    ran = run("gnt-node power -f off")
    assert ran.code == 2
    assert "Say which nodes" in ran.err
    assert run("gnt-node power --oob-timeout many on beta").code == 2
    assert run("gnt-node power explode beta").code == 2


def test_the_health_of_machines_is_listed_and_something_critical_is_told_by_the_exit_code(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    told = [[[0, "alpha"], [0, [["disk", "OK"], ["fan", "CRITICAL"]]]], [[0, "beta"], [2, None]]]
    coordinator.script_job(result=told)
    ran = run("gnt-node health")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "Node  Item Status", "alpha disk OK", "alpha fan  CRITICAL", "beta       not known",
    ]  # fmt: skip
    coordinator.script_job(result=[[[0, "alpha"], [0, [["disk", "OK"]]]]])
    ran = run("gnt-node health --json alpha")
    assert ran.code == 0
    assert json.loads(ran.out) == [{"node": "alpha", "item": "disk", "status": "OK"}]


def test_a_restricted_command_s_words_are_shown_by_node(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=[[True, "one\ntwo\n"], [False, "No."]])
    ran = run("gnt-node restricted-command tell alpha beta")
    assert ran.code == 1
    assert ran.out.splitlines() == ["alpha: one", "alpha: two", "beta: No."]
    ((order,),) = coordinator.submitted
    assert (order["command"], order["nodes"]) == ("tell", ["alpha", "beta"])
    assert run("gnt-node restricted-command tell").code == 2
    assert run("gnt-node restricted-command tell nowhere").code == 3


def test_nobody_waits_for_what_is_only_submitted(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=list(NODES))
    ran = run("gnt-node power --submit --print-jobid on beta")
    assert (ran.code, ran.out.strip().isdecimal()) == (0, True)
    assert "JobID: " in ran.err
