"""``gnt-storage``: what nodes tell of providers, as Ganeti prints it."""

import json

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

PARAMETERS = [["row", "in which row"], ["label", ""]]
ROW = [
    "shelf",
    {
        "alpha": [],
        "beta": [["/srv/shelf", True, "", PARAMETERS]],
        "gamma": [["/srv/shelf", False, "has no script “grow”.", []]],
    },
    {"attic": True, "default": False},
    PARAMETERS,
]


def test_where_providers_can_be_used_is_told_as_ganeti_tells_it(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=[ROW])
    ran = run("gnt-storage diagnose")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Provider: shelf",
        "---",
        "  Node: alpha, status: ExtStorage provider not found",
        "  Node: beta, status: valid (path: /srv/shelf) [parameters: row, label]",
        "  Node: gamma, status: invalid - has no script “grow”. (path: /srv/shelf) [no parameters]",
        "  --",
        "  For nodegroup: attic --> valid",
        "  For nodegroup: default --> invalid",
        "",
    ]


def test_all_about_a_provider_is_shown(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=[ROW])
    ran = run("gnt-storage info shelf")
    assert ran.out.splitlines() == [
        "shelf:",
        "  - Valid for nodegroups:",
        "      attic",
        "  - Supported parameters:",
        "      row: in which row",
        "      label: ",
        "",
    ]
    ((order,),) = coordinator.submitted
    assert order["names"] == ["shelf"]
    coordinator.script_job(result=[ROW])
    assert json.loads(run("gnt-storage info --json").out)[0]["parameters"] == PARAMETERS
    nowhere = [ROW[0], ROW[1], {"default": False}, []]
    coordinator.script_job(result=[nowhere])
    assert "  - Invalid for all nodegroups" in run("gnt-storage info").out


def test_a_provider_that_no_node_has_is_named(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=[])
    ran = run("gnt-storage info rack")
    assert ran.code != 0
    assert "No node has a provider “rack”" in ran.err
    coordinator.script_job(result=[])
    assert run("gnt-storage diagnose").code == 1
