"""What allocator programs answer, good and bad."""

import json
from typing import Any

import pytest

from common.errors import InvalidRequest
from coordinator.iallocator.answers import Moves
from coordinator.iallocator.response import (
    Response,
    read_allocations,
    read_moves,
    read_nodes,
    read_response,
)

GOOD: dict[str, Any] = {"success": True, "info": "fine", "result": ["alpha"]}
MIGRATE = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1"}


def answer(result: Any) -> Response:
    return read_response(json.dumps(GOOD | {"result": result}))


def test_an_answer_has_three_parts() -> None:
    given = Response(success=True, info="fine", result=["alpha"])
    assert read_response(json.dumps(GOOD)) == given


def test_the_old_name_of_the_result_is_understood() -> None:
    old = {"success": True, "info": "fine", "nodes": ["alpha"]}
    assert read_nodes(read_response(json.dumps(old)), 1) == ("alpha",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Cannot read its answer: Input data was truncated"),
        ("[" * 100_000, "Cannot read its answer"),
        ("[]", "it is an object, not a list"),
        (json.dumps(GOOD | {"success": "yes"}), "success is true or false, not text"),
        (json.dumps(GOOD | {"info": None}), "info is text, not nothing"),
        (json.dumps(GOOD | {"result": "alpha"}), "result is a list"),
        (json.dumps({"info": ""}), "“success” is missing"),
    ],
)
def test_what_is_no_answer_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        read_response(text)


def test_nodes_are_as_many_as_asked_for() -> None:
    assert read_nodes(answer(["alpha", "beta"]), 2) == ("alpha", "beta")
    for bad, complaint in (
        ([], "names 0 node.s. where 2 are needed: none"),
        (["a", "b", "c"], "names 3"),
        (["a", "a"], "names a node twice"),
        (["a", 1], "is text, not a whole number"),
    ):
        with pytest.raises(InvalidRequest, match=complaint):
            read_nodes(answer(bad), 2)


def test_who_was_left_over_is_named_with_or_without_a_reason() -> None:
    placed = read_allocations(answer([[["web1", ["alpha"]]], ["web2", ["web3", "no memory"]]]))
    assert placed == {"web1": ("alpha",)}


def test_moves_are_read() -> None:
    moves = read_moves(answer([[["web1", "default", ["beta"]]], [["web2", "no"]], [[MIGRATE]]]))
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
        read_moves(answer(result))


@pytest.mark.parametrize("result", [[], [[]], [[["web1", "alpha"]], []], [[], [{}]], [[], [[]]]])
def test_what_are_no_seats_is_refused(result: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_allocations(answer(result))
