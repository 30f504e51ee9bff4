"""Each answer of the REST interface has the shape it had, or was changed on purpose."""

import json
from pathlib import Path
from typing import Any

from tests.golden import WIRE
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.golden import check_golden
from tests.support.rest import rest_of

# In this order; job 1 has made the instance web1 on beta.
ASKED: list[tuple[str, str, Any]] = [
    ("GET", "/version", None),
    ("GET", "/2", None),
    ("GET", "/2/features", None),
    ("GET", "/2/info", None),
    ("GET", "/2/nodes", None),
    ("GET", "/2/nodes?bulk=1", None),
    ("GET", "/2/nodes/beta", None),
    ("GET", "/2/nodes/beta/role", None),
    ("GET", "/2/nodes/beta/tags", None),
    ("GET", "/2/instances", None),
    ("GET", "/2/instances?bulk=1", None),
    ("GET", "/2/instances/web1", None),
    ("GET", "/2/instances/web1/console", None),
    ("GET", "/2/groups", None),
    ("GET", "/2/groups?bulk=1", None),
    ("GET", "/2/groups/default", None),
    ("GET", "/2/jobs", None),
    ("GET", "/2/jobs?bulk=1", None),
    ("GET", "/2/jobs/1", None),
    ("GET", "/2/jobs/1/wait", {"fields": ["status", "summary"]}),
    ("GET", "/2/tags", None),
    ("GET", "/2/query/node?fields=name,colour", None),
    ("PUT", "/2/query/instance", {"fields": ["name"], "qfilter": ["=", "name", "web1"]}),
    ("GET", "/2/query/group/fields?fields=name", None),
    ("GET", "/2/nodes/nobody", None),
    ("PUT", "/2/instances/web1/shutdown?dry-run=1", None),
    ("DELETE", "/2/jobs/1", None),
]  # fmt: skip


# Fields of operations and parameters, which golden files of their own have.
ELSEWHERE = frozenset({"diskparams", "hvparams", "ndparams", "ops"})


def shape(value: Any) -> Any:
    """Return types instead of values; of lists, that of what they hold."""
    match value:
        case dict():
            return {
                key: type(each).__name__ if key in ELSEWHERE else shape(each)
                for key, each in sorted(value.items())
            }
        case list():
            shapes: list[Any] = []
            for each in map(shape, value):
                if each not in shapes:
                    shapes.append(each)
            return shapes
        case _:
            return "null" if value is None else type(value).__name__


def test_every_answer_has_the_shape_it_had(tmp_path: Path, update_golden: bool) -> None:
    told: list[dict[str, Any]] = []

    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            async with rest_of(cluster, tmp_path) as rest:
                for method, path, body in ASKED:
                    answer = await rest.ask(method, path, body)
                    asked = {"asked": f"{method} {path}"} | ({"body": body} if body else {})
                    told.append(asked | {"status": answer.status, "answer": shape(answer.value)})

    simulate(scenario())
    text = json.dumps(told, indent=1, ensure_ascii=False)
    check_golden(WIRE / "rest.json", text + "\n", update=update_golden)
