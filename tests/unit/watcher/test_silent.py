"""A node that has been silent for long is switched off."""

from typing import Any

from common.names import NodeName
from coordinator.operations.base import read_operation
from coordinator.operations.node.fence import FenceNode
from coordinator.watcher.silent import SILENCE_S
from tests.unit.watcher.answering import NOW, Answering


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
