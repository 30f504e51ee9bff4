"""The request type capacity: as many as an allocation after the other would place, just there."""

import io
import json
from random import Random
from typing import Any

import pytest

from coordinator.htools.hail import run
from tests.diff.messages import random_message

SEED = 43


def ask(message: dict[str, Any], **request: Any) -> tuple[int, Any, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    text = json.dumps({**message, "request": {**message["request"], **request}})
    status = run(["-"], io.StringIO(text), stdout, stderr)
    return status, json.loads(stdout.getvalue() or "null"), stderr.getvalue()


def messages(count: int) -> list[dict[str, Any]]:
    rng = Random(SEED)
    found = (random_message(rng, "allocate", nodes=rng.choice((3, 5, 8))) for _ in range(3 * count))
    # With all storage exclusive allocations go by lost space, and a filling by the score.
    return [one for one in found if '"exclusive_storage": true' not in json.dumps(one)][:count]


def test_the_places_are_those_that_a_multi_allocation_gives() -> None:
    placed = 0
    for message in messages(15):
        message["request"].pop("restrict-to-nodes", None)  # which many instances cannot have
        status, whole, stderr = ask(message, type="capacity", limit=6)
        if status:
            assert stderr
            continue
        count, nodes = whole["result"]
        assert count == len(nodes) <= 6
        new = {key: value for key, value in message["request"].items() if key != "type"}
        news = [new | {"name": f"{new['name']}-{number}"} for number in range(1, count + 1)]
        if count:
            _, many, _ = ask(message, type="multi-allocate", instances=news)
            assert [where for _, where in many["result"][0]] == nodes
        placed += count
    assert placed > 20


def test_what_is_full_is_told() -> None:
    message = messages(1)[0]
    _, answer, _ = ask(message, type="capacity")
    assert answer["success"]
    assert "instances fit; then" in answer["info"]


@pytest.mark.parametrize("limit", [-1, "x", [2]])
def test_bad_limits_are_refused(limit: Any) -> None:
    status, answer, stderr = ask(messages(1)[0], type="capacity", limit=limit)
    assert (status, answer) == (1, None)
    assert stderr.count("\n") == 1
    assert "limit" in stderr
