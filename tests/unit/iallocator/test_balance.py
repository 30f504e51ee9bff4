"""The request type balance: moves that make the cluster better, and never more than asked for."""

import io
import json
from random import Random
from typing import Any

import numpy as np
import pytest

from coordinator.allocator.balancing.balance import Balance
from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.htools.hail import run
from coordinator.iallocator.cluster import read_cluster, read_message
from coordinator.iallocator.jsontext import parse
from tests.diff.messages import random_message

SEED = 41


def ask(message: dict[str, Any], **request: Any) -> tuple[int, Any, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    text = json.dumps({**message, "request": {"type": "balance", **request}})
    status = run(["-"], io.StringIO(text), stdout, stderr)
    return status, json.loads(stdout.getvalue() or "null"), stderr.getvalue()


def clusters(count: int) -> list[dict[str, Any]]:
    rng = Random(SEED)
    return [random_message(rng, "node-evacuate", nodes=rng.choice((4, 6, 9))) for _ in range(count)]


def test_moves_and_jobs_belong_together_and_are_no_more_than_asked_for() -> None:
    found = 0
    for message in clusters(12):
        status, whole, stderr = ask(message)
        assert (status, whole["success"]) == (0, True), stderr
        moved, failed, jobs = whole["result"]
        assert not failed
        assert [name for name, _, _ in moved] == [job[0]["instance_name"] for job in jobs]
        assert all(job[0].get("depends") == [[-1, ["success"]]] for job in jobs[1:])
        _, short, _ = ask(message, max_operations=2)
        assert short["result"][0] == moved[:2]
        assert short["result"][2] == jobs[:2]
        assert ask(message, max_operations=0)[1]["result"] == [[], [], []]
        found += len(moved)
    assert found > 10


def test_of_moves_in_several_groups_those_come_first_that_gain_most() -> None:
    message = clusters(9)[-1]
    snapshot = read_cluster(read_message(parse(json.dumps(message))), kvm_node_memory=4096)
    first: dict[str, float] = {}  # the instance that is moved first in each group: what it gains
    for members in ClusterModel(snapshot).groups.values():
        balance = Balance(ClusterModel(snapshot), np.array(members), Limits())
        before = balance.score().value
        if move := next(balance.moves(), None):
            first[snapshot.instances[move.instance].name] = before - move.score
    assert len(first) > 1
    moved = [name for name, _, _ in ask(message)[1]["result"][0]]
    assert moved[0] == max(first, key=first.__getitem__)


def test_one_group_can_be_asked_for_and_then_only_that_is_touched() -> None:
    for message in clusters(5):
        uuid, group = next(iter(message["nodegroups"].items()))
        for name in (uuid, group["name"]):
            _, answer, _ = ask(message, group_name=name)
            assert {where for _, where, _ in answer["result"][0]} <= {group["name"]}


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"max_operations": -1}, "less than none"),
        ({"max_operations": "x"}, "max_operations"),
        ({"group_name": 5}, "group_name"),
    ],
)
def test_bad_requests_are_refused(request_: dict[str, Any], complaint: str) -> None:
    status, answer, stderr = ask(clusters(1)[0], **request_)
    assert (status, answer) == (1, None)
    assert complaint in stderr
    assert stderr.count("\n") == 1


def test_a_group_that_does_not_exist_is_an_answer() -> None:
    status, answer, _ = ask(clusters(1)[0], group_name="nowhere")
    assert (status, answer["success"]) == (0, False)
    assert "nowhere" in answer["info"]
