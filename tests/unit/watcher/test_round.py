import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from common.errors import Conflict
from common.names import NodeName
from coordinator.operations.base import read_operation
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.fence import FenceNode
from coordinator.operations.registry import load_all
from coordinator.queries.query import query
from coordinator.watcher.conversation import LARGEST_ORDER, SOURCE, Request, Round, Told, Weight
from coordinator.watcher.decide import ATTEMPTS, PAUSES_S
from coordinator.watcher.round import one_round, run_hooks
from coordinator.watcher.silent import SILENCE_S
from tests.unit.queries.cluster import source

NOW = 1_800_000_000.0


class Answering:
    """A coordinator of which the answers are made up; ``down`` should run and do not."""

    def __init__(self, *down: str) -> None:
        self.down = list(down)
        self.pause: float | None = None
        self.drained = False
        self.fences = False
        self.nodes: list[list[Any]] = []
        self.mirrors: list[list[Any]] = []
        self.reserved: list[list[Any]] = []
        self.jobs: list[list[Any]] = []
        self.locks: list[list[Any]] = []
        self.asked: list[Request] = []
        self.ordered: list[dict[str, Any]] = []
        self.refuses: str | None = None
        self.complaints: list[str] = []

    def hold(
        self, now: float = NOW, talk: Callable[..., Round] = one_round, **options: Any
    ) -> list[Told]:
        conversation = talk(now, **options)
        answer: Any = None
        try:
            while True:
                request = conversation.send(answer)
                self.asked.append(request)
                answer = self._answer(*request)
        except StopIteration as end:
            told: list[Told] = end.value
            return told

    def _answer(self, method: str, args: tuple[Any, ...]) -> Any:
        match method, *args:
            case "QueryConfigValues", names:
                return [self.pause, self.drained, False, self.fences, False][: len(names)]
            case "Query", "instance", fields, *_ if "mirror_state" in fields:
                return _table(self.mirrors)
            case "Query", "instance", fields, *_ if "expires" in fields:
                return _table(self.reserved)
            case "Query", "job", ["ops"], *_:  # for what has expired
                return _table([[ops] for _, _, _, ops in self.jobs])
            case "Query", "instance", *_:
                return _table([[name] for name in self.down])
            case "Query", "job", fields, *_ if len(fields) == 2:  # for mirrors
                return _table([[status, ops] for _, _, status, ops in self.jobs])
            case "Query", "job", *_:
                return _table(self.jobs)
            case "Query", ("lock" | "node") as kind, *_:
                return _table({"lock": self.locks, "node": self.nodes}[kind])
            case "SubmitManyJobs", jobs:
                if self.refuses is not None:
                    return [[False, self.refuses] for _ in jobs]
                self.ordered += [op for (op,) in jobs]
                return [[True, 40 + number] for number, _ in enumerate(jobs)]
            case (("RunWatcherHooks" | "AutoArchiveJobs"), *_):
                return {"RunWatcherHooks": self.complaints, "AutoArchiveJobs": [3, 10]}[method]
            case _:
                raise AssertionError(f"unexpected {method}{args}")

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.asked]

    def remember(self, ago_s: float) -> None:
        """Have started web1 so long ago."""
        then = int(NOW - ago_s)
        trail = [[SOURCE, "should run", then * 10**9]]
        op = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1", "reason": trail}
        self.jobs.append([[then, 0], [then + 1, 500_000], "error", [op]])


def _table(rows: list[list[Any]]) -> dict[str, Any]:
    return {"fields": [], "data": [[[0, value] for value in row] for row in rows]}


def test_where_all_runs_four_questions_and_the_archive_are_all_there_is() -> None:
    cluster = Answering()
    assert cluster.hold() == [(Weight.INFO, "Archived 3 jobs.")]
    assert cluster.methods == ["QueryConfigValues", *["Query"] * 3, "AutoArchiveJobs"]


def test_a_hook_that_failed_is_told_in_the_journal() -> None:
    cluster = Answering()
    cluster.complaints = ["Hook watcher/tell on beta failed: so it said"]
    assert cluster.hold(talk=run_hooks) == [(Weight.WARNING, cluster.complaints[0])]


def test_hooks_wait_with_the_watcher_while_it_pauses() -> None:
    cluster = Answering()
    cluster.pause = NOW + 1
    assert cluster.hold(talk=run_hooks) == []
    assert "RunWatcherHooks" not in cluster.methods
    cluster.hold(talk=run_hooks, heed_pause=False)
    assert "RunWatcherHooks" in cluster.methods


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


def test_nothing_is_asked_while_the_watcher_pauses() -> None:
    cluster = Answering("web1")
    cluster.pause = NOW + 1800
    assert cluster.hold() == [(Weight.INFO, "The watcher pauses for another 30 minutes.")]
    assert cluster.methods == ["QueryConfigValues"]
    cluster.hold(heed_pause=False)
    assert cluster.ordered


def test_a_pause_that_is_over_is_none() -> None:
    cluster = Answering("web1")
    cluster.pause = NOW - 1
    cluster.hold()
    assert cluster.ordered


def test_a_drained_queue_is_left_alone_and_named() -> None:
    cluster = Answering("web1", "web2")
    cluster.drained = True
    assert cluster.hold()[0] == (
        Weight.INFO, "The job queue is drained, so these instances stay down: web1, web2.",
    )  # fmt: skip
    assert not cluster.ordered


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


def test_whatever_a_request_meets_ends_the_round() -> None:
    conversation = one_round(NOW)
    next(conversation)
    with pytest.raises(Conflict):
        conversation.throw(Conflict("The cluster is read-only."))


def test_the_questions_are_understood() -> None:
    """Filters and fields are what the coordinator knows."""
    cluster = Answering("web1")
    cluster.mirrors = [["web1", "default", "parted", True, "up"]]
    cluster.reserved = [["u-1", "web2", NOW]]
    cluster.hold()
    for request in cluster.asked:
        if request.method == "Query":
            what, fields, condition = request.args
            answer = asyncio.run(query(what, fields, condition, source()))
            assert {field["kind"] for field in answer["fields"]}.isdisjoint({"unknown"})


def test_what_nodes_tell_of_copies_is_noted_once_a_group_and_parted_ones_are_connected() -> None:
    cluster = Answering()
    cluster.mirrors = [
        ["web1", "default", "parted", True, "up"],
        ["web2", "default", "whole", True, "up"],
        ["web3", "other", "parted", False, "down"],
    ]
    note, link, _ = cluster.hold()
    assert note.text.startswith("Group default: copies of mirrored disks fell behind")
    assert link.text == (
        "Instance web1: the copies of its disks are parted, and are connected again; job 41."
    )
    orders = [
        (op["OP_ID"], op.get("group_name", op.get("instance_name"))) for op in cluster.ordered
    ]
    assert orders == [("OP_GROUP_VERIFY_DISKS", "default"), ("OP_INSTANCE_ACTIVATE_DISKS", "web1")]


def test_copies_that_a_job_tends_already_are_left_to_it() -> None:
    cluster = Answering()
    cluster.mirrors = [["web1", "default", "parted", True, "up"]]
    cluster.jobs = [
        [[0, 0], None, "running", [{"OP_ID": "OP_GROUP_VERIFY_DISKS", "group_name": "default"}]],
        [[0, 0], [1, 0], "error", [{"OP_ID": "OP_X", "instance_name": "web1"}]],
    ]
    cluster.hold()
    assert cluster.ordered == []


def test_mirrors_are_let_be_while_the_queue_is_drained() -> None:
    cluster = Answering()
    cluster.drained = True
    cluster.mirrors = [["web1", "default", "parted", True, "up"]]
    cluster.hold()
    assert cluster.ordered == []


def test_what_was_reserved_until_now_is_forgotten_once_and_nothing_else() -> None:
    cluster = Answering()
    cluster.reserved = [["u-1", "web1", NOW], ["u-2", "web2", NOW + 1], ["u-3", "web3", None]]
    told, _ = cluster.hold()
    assert told.text == "Instance web1: its reservation has expired; job 40 forgets it."
    (ordered,) = cluster.ordered
    assert (ordered["OP_ID"], ordered["instance_name"]) == ("OP_INSTANCE_REMOVE", "u-1")
    order = read_operation(ordered)
    assert isinstance(order, RemoveInstance)
    assert order.if_expired  # so nothing happens to what is made meanwhile
    cluster.jobs = [[[int(NOW), 0], None, "queued", [ordered]]]
    assert len(cluster.hold()) == 1
    assert len(cluster.ordered) == 1


def test_a_refused_removal_of_what_has_expired_is_told() -> None:
    cluster = Answering()
    cluster.reserved, cluster.refuses = [["u-1", "web1", NOW]], "The queue is full."
    told, _ = cluster.hold()
    assert (
        told.text == "Instance web1: its reservation has expired, and it stays: The queue is full."
    )


def test_only_a_node_that_alone_has_been_silent_for_long_is_switched_off() -> None:
    cluster = Answering()
    cluster.fences = True
    long, lately, program = SILENCE_S, SILENCE_S - 1, "/etc/gantry/out-of-band/switch"
    cases: tuple[tuple[list[list[Any]], str], ...] = (
        ([["alpha", 0, False, program], ["beta", lately, False, program]], ""),
        ([["alpha", 0, False, program], ["beta", None, False, program]], ""),
        (
            [["beta", long, False, program], ["gamma", 1, False, program]],
            "beta, gamma are silent at the same",
        ),
        ([["beta", long, True, program]], ""),
        ([["beta", long, False, program], ["gamma", long, True, program]], "beta, gamma are"),
        ([["alpha", 0, False, ""], ["beta", long, False, ""]], "Nothing switches its power"),
        (
            [["alpha", 0, False, ""], ["beta", long, False, program]],
            "beta has been silent for 5 minutes; job 40",
        ),
    )
    for nodes, told in cases:
        cluster.nodes = nodes
        first, *_ = cluster.hold()
        assert told in first.text
    (op,) = cluster.ordered
    assert read_operation(op) == FenceNode(node_name=NodeName("beta"))
    cluster.jobs = [[[int(NOW), 0], [int(NOW), 0], "error", [op]]]
    cluster.hold()
    assert len(cluster.ordered) == 1
    cluster.drained, cluster.jobs = True, []
    cluster.hold()
    assert len(cluster.ordered) == 1
