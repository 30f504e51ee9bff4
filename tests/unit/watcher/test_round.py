"""One round of the watcher: what it asks, when it does nothing, and what ends it."""

import asyncio

import pytest

from common.errors import Conflict
from coordinator.queries.query import query
from coordinator.watcher.conversation import Weight
from coordinator.watcher.round import one_round, run_hooks
from tests.unit.queries.cluster import source
from tests.unit.watcher.answering import NOW, Answering


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
