"""Instances that should run and do not are started, each by a job."""

from typing import Any

import pytest

from coordinator.operations.base import read_operation
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.registry import load_all
from coordinator.watcher.conversation import LARGEST_ORDER, SOURCE, Weight
from coordinator.watcher.decide import ATTEMPTS, PAUSES_S
from tests.unit.watcher.answering import NOW, Answering


def test_what_is_down_is_ordered_to_be_started_one_job_each() -> None:
    cluster = Answering("web1", "web2")
    first, second, _ = cluster.hold()
    assert first == (
        Weight.WARNING, "Instance web1 should run and does not; job 40 starts it, attempt 1 of 5.",
    )  # fmt: skip
    assert "web2" in second.text
    load_all()
    for name, op in zip(("web1", "web2"), cluster.ordered, strict=True):
        assert read_operation(op) == StartInstance(instance_name=name, only_if_up=True)  # type: ignore[arg-type]
        ((origin, why, when),) = op["reason"]
        assert (origin, when) == (SOURCE, NOW * 1e9)
        assert "attempt 1 of 5" in why


@pytest.mark.parametrize(
    ("jobs", "locks"),
    [
        ([[[1, 0], None, "queued", [{"OP_ID": "OP_X", "instance_name": "web1"}]]], []),
        ([[[1, 0], None, "running", [{"OP_ID": "OP_Y"}, {"instance_name": "web1"}]]], []),
        ([], [["instance/web1", "exclusive", []]]),
        ([], [["instance/web1", None, [["exclusive", ["job 7"]]]]]),
    ],
)
def test_an_instance_that_a_job_has_to_do_with_is_left_to_it(
    jobs: list[Any], locks: list[Any]
) -> None:
    cluster = Answering("web1")
    cluster.jobs, cluster.locks = jobs, locks
    assert "a job has to do with it already" in cluster.hold()[0].text
    assert not cluster.ordered


@pytest.mark.parametrize(
    ("jobs", "locks"),
    [
        ([[[1, 0], [2, 0], "success", [{"OP_ID": "OP_X", "instance_name": "web1"}]]], []),
        ([[[1, 0], None, "queued", [{"OP_ID": "OP_X", "instance_name": "web2"}]]], []),
        ([], [["instance/web1", "shared", []], ["node/web1", "exclusive", []]]),
        ([], [["instance/web2", "exclusive", []], ["cluster/BGL", "shared", []]]),
    ],
)
def test_other_jobs_are_in_nobodys_way(jobs: list[Any], locks: list[Any]) -> None:
    cluster = Answering("web1")
    cluster.jobs, cluster.locks = jobs, locks
    cluster.hold()
    assert len(cluster.ordered) == 1


def test_its_own_jobs_are_its_memory_and_nobody_elses() -> None:
    cluster = Answering("web1")
    cluster.remember(30.0)
    assert cluster.hold()[0] == (
        Weight.INFO, "Instance web1 is down; attempt 2 to start it is due in a minute.",
    )  # fmt: skip
    (*_, ops) = cluster.jobs[0]
    ops[0]["reason"] = [["gnt:client", "", 0]]
    cluster.hold()
    assert len(cluster.ordered) == 1


@pytest.mark.parametrize(
    ("status", "ago_s", "counts_anew"),
    [("success", 20, True), ("success", 40, False), ("error", 20, False), ("canceled", 20, False)],
)
def test_what_was_tried_before_somebody_else_worked_on_it_does_not_count(
    status: str, ago_s: int, counts_anew: bool
) -> None:
    cluster = Answering("web1")
    cluster.remember(30.0)
    then = [int(NOW) - ago_s, 0]
    by_hand = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}
    cluster.jobs.append([then, then, status, [{"OP_ID": "OP_TEST_DELAY"}, by_hand]])
    cluster.hold()
    assert bool(cluster.ordered) is counts_anew


def test_the_last_attempt_says_that_it_is_the_last() -> None:
    cluster = Answering("web1")
    ago = 0.0
    for pause in reversed(PAUSES_S[:-1]):
        ago += pause + 60.0
        cluster.remember(ago)
    told = cluster.hold()[0]
    assert told.weight is Weight.WARNING
    assert "the last attempt of 5: if it does not stay up, it is left for 3 hours" in told.text
    cluster.remember(40.0)
    assert len(cluster.jobs) == ATTEMPTS
    assert "started 5 times in vain" in cluster.hold()[0].text


def test_a_refused_job_is_told_with_its_reason() -> None:
    cluster = Answering("web1")
    cluster.refuses = "There is no such thing."
    assert cluster.hold()[0] == (
        Weight.WARNING,
        "Instance web1 should run and does not; it cannot be started: There is no such thing.",
    )


def test_a_round_orders_so_many_at_most() -> None:
    cluster = Answering(*(f"web{number}" for number in range(LARGEST_ORDER + 1)))
    cluster.hold()
    assert len(cluster.ordered) == LARGEST_ORDER


def test_a_drained_queue_is_left_alone_and_named() -> None:
    cluster = Answering("web1", "web2")
    cluster.drained = True
    assert cluster.hold()[0] == (
        Weight.INFO, "The job queue is drained, so these instances stay down: web1, web2.",
    )  # fmt: skip
    assert not cluster.ordered
