"""The dashboard and the alerts ask for what is told."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from common.exposition import Family, Kind
from common.figures import Figures, Outlook
from common.process_figures import process_figures
from common.timings import Timings
from coordinator.cli.commands import AREAS
from coordinator.rapi.copy import Table
from coordinator.rapi.fields import FIELDS
from coordinator.rapi.inside import inside_figures
from coordinator.rapi.metrics import cluster_figures, own_figures
from noded.monitor.metrics import node_figures
from noded.monitor.sight import Sight

FILES = Path(__file__).parents[2] / "deploy/monitoring"
ALERTS = json.loads((FILES / "alerts.json").read_text(encoding="utf-8"))
DASHBOARD = json.loads((FILES / "dashboard.json").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
OF_PROMETHEUS = {"job", "instance"}  # labels that every figure gets where it is stored

_METRIC = re.compile(r"\bgantry_\w+")
_MATCHERS = re.compile(r"\b(gantry_\w+)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)(?:=~|!=|!~|=)\"")
INSIDE = Figures(
    commits=Timings().so_far(), is_writable=True, candidates=(), lock_waits=Timings().so_far(),
    lock_waiters=0, longest_lock_wait_s=0.0, locks={}, certificates={}, outlook=Outlook(),
)  # fmt: skip


def families() -> list[Family]:
    figures = chain(
        node_figures(Sight()),
        own_figures(None),
        cluster_figures({kind: Table() for kind in FIELDS}, 0.0),
        inside_figures(INSIDE),
        process_figures(),
    )
    return [family for family, _ in figures]


def series() -> Iterator[tuple[str, Family]]:
    """Yield what figures are called where they are stored."""
    for family in families():
        is_several = family.kind is Kind.HISTOGRAM
        for part in ("_bucket", "_sum", "_count") if is_several else ("",):
            yield family.name + part, family


SERIES = dict(series())


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (
        one["query"]["query"] for one in DASHBOARD["templating"]["list"] if one["name"] == "job"
    )


def test_no_two_metrics_share_a_name() -> None:
    assert [
        name for name, count in Counter(one.name for one in families()).items() if count > 1
    ] == []


@pytest.mark.parametrize("expression", [*expressions()])
def test_what_is_asked_for_is_told(expression: str) -> None:
    assert _METRIC.findall(expression)
    for name in _METRIC.findall(expression):
        assert name in SERIES
    for name, matchers in _MATCHERS.findall(expression):
        assert {*_LABEL.findall(matchers)} <= {*SERIES[name].labels} | OF_PROMETHEUS
    grows = [name for name in _METRIC.findall(expression) if SERIES[name].kind is not Kind.GAUGE]
    assert ("rate(" in expression) is bool(grows)  # of what only grows, and of that alone


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"[0-9]+[smh]", rule["for"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    (name, *_) = _METRIC.findall(rule["expr"])
    for text in rule["annotations"].values():
        assert text.endswith(".")
        labels = {*re.findall(r"\$labels\.(\w+)", text)}
        assert labels <= {*SERIES[name].labels} | OF_PROMETHEUS
        for program, command in re.findall(r"\b(gnt-\w+) ([a-z-]+)", text):
            assert command in AREAS[program].commands


def test_alerts_and_panels_are_told_apart() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 0
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len({*numbers}) == len(numbers) > 0


def test_panels_do_not_lie_upon_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
