"""What allocator programs answer, good and bad."""

import json
from typing import Any

import pytest

from common.errors import InvalidRequest
from coordinator.iallocator.answers import Moves
from coordinator.iallocator.response import (
    Allocations,
    Response,
    read_allocations,
    read_moves,
    read_nodes,
    read_response,
)

GOOD: dict[str, Any] = {"success": True, "info": "fine", "result": ["alpha"]}
MIGRATE = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1"}


def test_an_answer_has_three_parts() -> None:
    assert read_response(json.dumps(GOOD)) == Response(True, "fine", ["alpha"])  # noqa: FBT003


def test_the_old_name_of_the_result_is_understood() -> None:
    old = {"success": False, "info": "no", "nodes": []}
    assert read_response(json.dumps(old)) == Response(False, "no", [])  # noqa: FBT003


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no JSON object"),
        (json.dumps(GOOD | {"success": "yes"}), "does not say whether it succeeded"),
        (json.dumps(GOOD | {"info": None}), "no text “info”"),
        (json.dumps(GOOD | {"result": "alpha"}), "no list “result”"),
        (json.dumps({"success": True, "info": ""}), "no list “result”"),
    ],
)
def test_what_is_no_answer_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        read_response(text)


def test_nodes_are_as_many_as_asked_for() -> None:
    assert read_nodes(["alpha", "beta"], 2) == ("alpha", "beta")
    for bad, complaint in (
        ([], "names 0 node.s. where 2 are needed: none"),
        (["a", "b", "c"], "names 3"),
        (["a", "a"], "names a node twice"),
        (["a", 1], "where a list of nodes belong"),
        ({}, "where a list of nodes belong"),
    ):
        with pytest.raises(InvalidRequest, match=complaint):
            read_nodes(bad, 2)


def test_seats_name_who_was_left_over_with_or_without_a_reason() -> None:
    assignments = read_allocations([[["web1", ["alpha"]]], ["web2", ["web3", "no memory"]]])
    assert assignments == Allocations((("web1", ("alpha",)),), ("web2", "web3"))


def test_moves_are_read() -> None:
    moves = read_moves([[["web1", "default", ["beta"]]], [["web2", "no"]], [[MIGRATE]]])
    assert moves == Moves((("web1", "default", ("beta",)),), (("web2", "no"),), ((MIGRATE,),))


@pytest.mark.parametrize(
    "result",
    [
        [], [[], []], [[["web1"]], [], []], [[], [["web1"]], []], [[], [], [{}]], [[], [], [[1]]],
        [[], [], [[{"OP_ID": 1}]]], [[["web1", "g", "beta"]], [], []], None,
    ],
)  # fmt: skip
def test_what_are_no_moves_is_refused(result: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_moves(result)


@pytest.mark.parametrize("result", [[], [[]], [[["web1", "alpha"]], []], [[], [{}]], [[], [[]]]])
def test_what_are_no_seats_is_refused(result: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_allocations(result)
