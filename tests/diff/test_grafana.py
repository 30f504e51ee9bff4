"""Grafana's own model of dashboards reads ours, and leaves nothing of it out as unknown."""

import copy
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "grafana_foundation_sdk",
    reason="GRAFANA'S MODEL IS NOT INSTALLED (deploy/setup --test): it has not read the dashboard",
)
_MODEL = import_module("grafana_foundation_sdk.models.dashboard").Dashboard
_ENCODER = import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder
_RUNTIME = import_module("grafana_foundation_sdk.cog.runtime").Runtime()
import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()

FILE = Path(__file__).parents[2] / "deploy/monitoring/dashboard.json"
DASHBOARD = json.loads(FILE.read_text(encoding="utf-8"))

Fault = Callable[[dict[str, Any]], object]


def unknown(dashboard: Any) -> list[str]:
    """Return where a dashboard has something of which Grafana knows nothing."""
    read = json.loads(_ENCODER().encode(_MODEL.from_json(dashboard)))
    types = [panel["type"] for panel in dashboard["panels"]]
    kinds = [kind for kind in types if _RUNTIME.panelcfg_config(kind) is None]
    return [*_left_out(dashboard, read, ""), *(f"a panel that is a {kind}" for kind in kinds)]


def _left_out(given: Any, read: Any, path: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(read, dict):
        for name, value in given.items():
            yield from _left_out(value, read.get(name), f"{path}/{name}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from _left_out(one, other, f"{path}/{number}")
    elif given != read:
        yield path


def test_all_of_the_dashboard_is_known_to_grafana() -> None:
    assert DASHBOARD["panels"]
    assert unknown(DASHBOARD) == []


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        (lambda board: board.update(titel="x"), "/titel"),
        (lambda board: board["panels"][0].update(kind="x"), "/panels/0/kind"),
        (lambda board: board["panels"][0].update(type="graf"), "a panel that is a graf"),
        (lambda board: board["panels"][0]["targets"][0].update(expression="x"),
         "/panels/0/targets/0/expression"),
        (lambda board: board["panels"][0].update(options={"legnd": {}}), "/panels/0/options/legnd"),
        (lambda board: board["panels"][0]["gridPos"].update(width=1), "/panels/0/gridPos/width"),
        (lambda board: board["templating"]["list"][0].update(quary="x"),
         "/templating/list/0/quary"),
    ],
)  # fmt: skip
def test_what_grafana_does_not_know_is_found(fault: Fault, where: str) -> None:
    board = copy.deepcopy(DASHBOARD)
    fault(board)
    assert unknown(board) == [where]
