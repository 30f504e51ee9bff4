"""Debian's Prometheus reads what we tell, and takes our alerts and our dashboard's questions."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from common.exposition import exposition
from common.figures import CandidateFigures, Figures, GroupFigures, Outlook
from common.timings import Timings
from coordinator.rapi.inside import inside_figures
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.rest import rest_of

ROOT = Path(__file__).parents[2]
PROMTOOL = ROOT / ".cache/prometheus/usr/bin/promtool"
ALERTS = ROOT / "deploy/monitoring/alerts.json"
DASHBOARD = ROOT / "deploy/monitoring/dashboard.json"

pytestmark = pytest.mark.skipif(
    not PROMTOOL.exists(),
    reason="DEBIAN'S PROMETHEUS IS NOT UNPACKED (deploy/setup --test): it was not asked",
)


def promtool(*words: str, given: bytes = b"") -> tuple[int, str]:
    done = subprocess.run(  # noqa: TID251 -- the other program, and no loop in this thread
        [PROMTOOL, *words], input=given, capture_output=True, timeout=60, check=False
    )
    return done.returncode, (done.stdout + done.stderr).decode()


def tried(tmp_path: Path, *tests: dict[str, Any]) -> tuple[int, str]:
    """Have it evaluate rules and questions."""
    path = tmp_path / "tests.json"
    path.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": tests}))
    return promtool("test", "rules", str(path))


def test_figures_of_a_cluster_are_read_without_complaint(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        async with simulated_cluster(nodes=2) as cluster, rest_of(cluster, tmp_path) as rest:
            await cluster.run(create("web1", "beta"))
            await asyncio.sleep(60)
            return (await rest.ask("GET", "/metrics", user=None)).text

    text = simulate(scenario())
    assert b"gantry_cluster_commit_seconds_bucket" in text
    assert b"gantry_cluster_capacity_instances" in text
    code, said = promtool("check", "metrics", given=text)
    assert code == 0, said


def test_a_figure_that_occurs_twice_is_complained_of() -> None:
    code, _ = promtool("check", "metrics", given=b"# TYPE x gauge\nx 1\nx 1\n")
    assert code != 0


def test_alerts_are_rules_that_it_loads() -> None:
    code, said = promtool("check", "rules", str(ALERTS))
    assert code == 0, said
    count = sum(len(group["rules"]) for group in json.loads(ALERTS.read_text())["groups"])
    assert f"{count} rules found" in said


def test_questions_of_the_dashboard_are_understood(tmp_path: Path) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions = [
        each.replace("$job", ".*").replace("$__rate_interval", "5m")
        for each in asked
        if "vector(0)" not in each
    ]
    questions = [{"expr": each, "eval_time": "1m", "exp_samples": []} for each in expressions]
    code, said = tried(
        tmp_path, {"interval": "1m", "input_series": [], "promql_expr_test": questions}
    )
    assert code == 0, said


def test_who_is_behind_full_or_about_to_expire_is_told(tmp_path: Path) -> None:
    """The series are those that a coordinator's figures become."""
    figures = Figures(
        commits=Timings().so_far(), is_writable=False,
        candidates=(CandidateFigures(name="beta", answers=False, behind=7, behind_s=900.0),),
        lock_waits=Timings().so_far(), lock_waiters=1, longest_lock_wait_s=7200.0,
        locks={}, certificates={"beta": 86400.0},
        outlook=Outlook(
            groups=(GroupFigures(name="default", score=1.0, unsafe=2, capacity=0),),
            template="drbd",
        ),
    )  # fmt: skip
    lines = exposition(inside_figures(figures)).decode().splitlines()
    pairs = [line.rpartition(" ")[::2] for line in lines if not line.startswith("#")]
    series = [{"series": name, "values": f"{value}x200"} for name, value in pairs]
    firing = (
        "GantryIsReadOnly", "GantryCandidateIsBehind", "GantryLocksAreWaitedFor",
        "GantryNodesAreUnsafe", "GantryIsFull", "GantryCertificateEnds",
    )  # fmt: skip
    questions = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": "3h",
         "exp_samples": [{"labels": "{}", "value": 1}]}
        for name in firing
    ]  # fmt: skip
    test = {"interval": "1m", "input_series": series, "promql_expr_test": questions}
    code, said = tried(tmp_path, test)
    assert code == 0, said


def test_a_resync_has_a_percentage_and_one_that_stands_still_is_told(tmp_path: Path) -> None:
    (panel,) = [
        target["expr"].replace("$job", ".*")
        for each in json.loads(DASHBOARD.read_text())["panels"]
        for target in each["targets"]
        if "resync" in target["expr"]
    ]
    nodes = {"still": "75x90", "goes on": "75-0.5x90", "equal": "0x90"}
    series = [
        {"series": f'gantry_node_drbd_resync{kind}_bytes{{instance="{node}"}}', "values": values}
        for node, left in nodes.items()
        for kind, values in (("_left", left), ("", "0x90" if node == "equal" else "100x90"))
    ]
    alert = 'ALERTS{alertname="GantryResyncStandsStill",alertstate="firing"}'
    questions = [
        {"expr": panel, "eval_time": "30m", "exp_samples": [
            {"labels": '{instance="still"}', "value": 0.25},
            {"labels": '{instance="goes on"}', "value": 0.4},
        ]},
        {"expr": f"count by (instance) ({alert})", "eval_time": "1h",
         "exp_samples": [{"labels": '{instance="still"}', "value": 1}]},
    ]  # fmt: skip
    test = {"interval": "1m", "input_series": series, "promql_expr_test": questions}
    code, said = tried(tmp_path, test)
    assert code == 0, said
