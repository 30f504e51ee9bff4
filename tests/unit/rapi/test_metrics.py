"""What Prometheus is told of a cluster is true, and does not grow with it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from common.exposition import exposition
from coordinator.rapi.copy import Table, row_of
from coordinator.rapi.fields import FIELDS
from coordinator.rapi.metrics import cluster_figures

NOW_S = 1_000_000.0


def tables(**rows: list[dict[str, Any]]) -> dict[str, Table]:
    made = {kind: Table() for kind in FIELDS}
    for kind, told in rows.items():
        for key, values in enumerate(told):
            text = dict.fromkeys(FIELDS[kind]) | {"uuid": str(key), "serial_no": 1} | values
            made[kind].put(row_of(kind, values.get("id", key), msgspec.json.encode(text)))
    return made


def node(name: str, role: str = "R", **values: Any) -> dict[str, Any]:
    return {"name": name, "role": role, "pinst_cnt": 0, "sinst_cnt": 0, **values}


def job(number: int, status: str, age_s: float, *opcodes: str) -> dict[str, Any]:
    seconds, microseconds = divmod(int((NOW_S - age_s) * 1e6), 1_000_000)
    return {
        "id": number, "status": status, "ops": [{"OP_ID": each} for each in opcodes],
        "received_ts": [seconds, microseconds],
    }  # fmt: skip


def told(of: Mapping[str, Table]) -> dict[str, float]:
    lines = exposition(cluster_figures(of, NOW_S)).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


C1 = [{"name": "c1", "master": "alpha"}]


def test_instances_are_counted_by_status_those_too_that_none_has() -> None:
    of = tables(cluster=C1, instance=[{"name": f"web{n}", "status": "running"} for n in range(3)])
    figures = told(of)
    assert figures['gantry_cluster_instances{status="running"}'] == 3
    assert figures['gantry_cluster_instances{status="ERROR_down"}'] == 0


def test_a_silent_node_has_no_figures_and_does_not_count_as_empty() -> None:
    of = tables(
        cluster=C1,
        node=[
            node("alpha", "M", mtotal=1024, mfree=512, mnode=100, dtotal=10, dfree=4, ctotal=8),
            node("beta"),
            node("gamma", "O"),
        ],
    )
    figures = told(of)
    assert figures['gantry_cluster_node_memory_free_bytes{node="alpha"}'] == 512 << 20
    assert 'gantry_cluster_node_memory_free_bytes{node="beta"}' not in figures
    answers = {name: value for name, value in figures.items() if "_answers{" in name}
    assert answers == {
        'gantry_cluster_node_answers{node="alpha"}': 1,
        'gantry_cluster_node_answers{node="beta"}': 0,
    }
    assert figures['gantry_cluster_nodes{role="offline"}'] == 1
    assert figures['gantry_cluster_nodes{role="drained"}'] == 0


def test_jobs_are_counted_by_status_and_operation_and_the_oldest_waits_longest() -> None:
    of = tables(
        cluster=C1,
        job=[
            job(1, "success", 900, "OP_INSTANCE_CREATE"),
            job(2, "waiting", 70.5, "OP_INSTANCE_CREATE", "OP_TAGS_SET"),
            job(3, "waiting", 30, "OP_INSTANCE_CREATE"),
            job(4, "running", 10, "OP_TEST_DELAY"),
        ],
    )
    figures = told(of)
    labels = 'status="waiting",opcode="OP_INSTANCE_CREATE"'
    assert figures[f"gantry_cluster_jobs{{{labels}}}"] == 2
    assert figures['gantry_cluster_oldest_job_seconds{status="waiting"}'] == 70.5
    assert figures['gantry_cluster_oldest_job_seconds{status="queued"}'] == 0


def test_ten_thousand_instances_and_jobs_have_no_more_figures_than_ten() -> None:
    def cluster(count: int) -> dict[str, Table]:
        return tables(
            cluster=C1,
            node=[node("alpha", "M", mtotal=1, mfree=1)],
            instance=[{"name": f"web{n}", "status": "running"} for n in range(count)],
            job=[job(n, "success", 5, "OP_INSTANCE_STARTUP") for n in range(count)],
        )

    assert told(cluster(10_000)).keys() == told(cluster(10)).keys()


def test_names_of_operators_cannot_forge_figures() -> None:
    of = tables(cluster=[{"name": 'c"1\n\\', "master": "alpha"}])
    assert 'gantry_cluster_info{cluster="c\\"1\\n\\\\",master="alpha"}' in told(of)


def test_nothing_is_told_of_a_cluster_that_is_not_known() -> None:
    figures = told(tables())
    assert {name.partition("{")[0] for name in figures} == {"gantry_cluster_oldest_job_seconds"}
