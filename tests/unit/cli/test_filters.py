"""``gnt-filter`` sends rules as they are given, and tells of those there are."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

UUID = "00000000-0000-4000-8000-000000000000"
NEW = [["jobid", [">", "id", "watermark"]]]


@pytest.fixture
def rules(coordinator: ScriptedCoordinator) -> list[list[Any]]:
    """What the coordinator was sent."""
    sent: list[list[Any]] = []

    def replace(*args: Any) -> str:
        sent.append(list(args))
        return args[0] or UUID

    coordinator.methods["ReplaceFilter"] = replace
    coordinator.methods["DeleteFilter"] = lambda uuid: sent.append([uuid])
    row = [UUID, 7, 2, NEW, ["RATE_LIMIT", 3], [["gnt:user", "maintenance", 1]]]
    coordinator.methods["QueryFilters"] = lambda *_: [row]
    return sent


def test_a_rule_is_sent_as_it_is_given(run: Run, rules: list[list[Any]]) -> None:
    predicates = json.dumps(NEW, separators=(",", ":"))
    ran = run(f"gnt-filter add --priority 2 --action RATE_LIMIT~3 --predicates {predicates}")
    assert (ran.code, ran.out) == (0, f"{UUID}\n")
    assert rules.pop() == [None, 2, NEW, ["RATE_LIMIT", 3], []]
    assert run(f"gnt-filter replace {UUID} --action PAUSE --reason maintenance").code == 0
    *rule, [[source, reason, _]] = rules.pop()
    assert (rule, source, reason) == ([UUID, 0, [], "PAUSE"], "gnt:user", "maintenance")
    assert json.loads(run("gnt-filter add --json").out) == {"uuid": UUID}
    assert rules.pop()[3] == "CONTINUE"
    assert run(f"gnt-filter delete {UUID}").code == 0
    assert rules.pop() == [UUID]


def test_predicates_that_are_no_json_are_refused_by_name(run: Run, rules: list[list[Any]]) -> None:
    ran = run("gnt-filter add --predicates [[jobid]]")
    assert ran.code == 2
    assert "--predicates “[[jobid]]”: it is no JSON from line 1, column 3 on." in ran.err
    assert not rules


def test_all_about_a_rule_is_shown(run: Run, rules: list[list[Any]]) -> None:
    told = run(f"gnt-filter info {UUID}").out
    assert UUID in told
    assert "Action: RATE_LIMIT 3" in told
    assert '[["jobid", [">", "id", "watermark"]]]' in told
    assert "gnt:user: maintenance" in told
    (rule,) = json.loads(run("gnt-filter info --json").out)
    assert (rule["uuid"], rule["action"], rule["watermark"]) == (UUID, ["RATE_LIMIT", 3], 7)
    assert not rules
