"""``gnt-instance list-snapshots``: one line for what was kept of all disks at one moment."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

FIRST = {"name": "first", "taken_at": 1_000_000_000.0, "size": 1024, "room": 512, "node": "gamma"}
LATER = {
    "name": "later", "taken_at": 1_000_003_600.0, "size": 1024, "room": 1024, "node": None,
}  # fmt: skip
DISKS = {"web1": [[FIRST, LATER], [FIRST]], "web2": [[]]}


@pytest.fixture(autouse=True)
def answers(coordinator: ScriptedCoordinator) -> None:
    def query(_: str, fields: list[str], condition: Any) -> Any:
        chosen = [name for name in DISKS if condition is None or name in str(condition)]
        described = [dict.fromkeys(("name", "title", "kind", "doc"), field) for field in fields]
        known = [{"name": name, "disk.snapshots": DISKS[name]} for name in chosen]
        rows = [[[0, each[f]] if f in each else [3, None] for f in fields] for each in known]
        return {"fields": described, "data": rows}

    coordinator.methods["Query"] = query


def test_snapshots_are_listed_by_instance_the_oldest_first(run: Run) -> None:
    assert run("gnt-instance list-snapshots").out.splitlines() == [
        "Instance Snapshot Taken               Disks Size Room Node",
        "web1     first    2001-09-09 01:46:40     2 2.0G 1.0G gamma",
        "web1     later    2001-09-09 02:46:40     1 1.0G 1.0G -",
    ]


def test_snapshots_of_those_named_are_told_to_programs(run: Run) -> None:
    assert run("gnt-instance list-snapshots --no-headers web2").out == ""
    (first, _) = json.loads(run("gnt-instance list-snapshots --json web1").out)
    assert first == {
        "instance": "web1", "name": "first", "taken_at": 1_000_000_000.0, "disks": 2,
        "size": 2048, "room": 1024, "node": "gamma",
    }  # fmt: skip
