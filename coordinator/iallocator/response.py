"""What an allocator program answered, checked as far as the protocol says what it has to be."""

import json
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from common.record import Record
from coordinator.iallocator.answers import Moves


class Response(Record):
    """The three parts of an answer; ``result`` is not looked at yet."""

    success: bool
    info: str
    result: Any


class Allocations(Record):
    """Where many new instances go, and the names of those that fit nowhere."""

    placed: tuple[tuple[str, tuple[str, ...]], ...]
    failed: tuple[str, ...]


def read_response(text: str) -> Response:
    """Read what a program printed; ``nodes`` is the result's name in old ones.

    Raises:
        InvalidRequest: it is no answer.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"its answer is no JSON ({error})") from error
    if not isinstance(answer, dict):
        raise InvalidRequest("its answer is no JSON object")
    success, info = answer.get("success"), answer.get("info")
    result = answer["result"] if "result" in answer else answer.get("nodes")
    if not isinstance(success, bool):
        raise InvalidRequest("its answer does not say whether it succeeded (“success”)")
    if not isinstance(info, str):
        raise InvalidRequest("its answer has no text “info”")
    if not isinstance(result, list):
        raise InvalidRequest("its answer has no list “result”")
    return Response(success, info, result)


def read_nodes(result: Any, count: int) -> tuple[str, ...]:
    """Read the nodes of an allocation or a relocation.

    Raises:
        InvalidRequest: they are not as many as asked for, or one comes twice.
    """
    nodes = _texts(result, "a list of nodes")
    check_number(nodes, count)
    return nodes


def check_number(nodes: Sequence[str], count: int) -> None:
    """Check the nodes that were chosen for one instance.

    Raises:
        InvalidRequest: they are not as many as asked for, or one comes twice.
    """
    if len(nodes) != count:
        raise InvalidRequest(
            f"it names {len(nodes)} node(s) where {count} are needed: {', '.join(nodes) or 'none'}"
        )
    if len(set(nodes)) != count:
        raise InvalidRequest(f"it names a node twice: {', '.join(nodes)}")


def read_allocations(result: Any) -> Allocations:
    """Read what came of many new instances; failed ones may carry a reason.

    Raises:
        InvalidRequest: it is not shaped as the protocol says.
    """
    placed, failed = _several(result, 2)
    return Allocations(
        tuple((_text(one[0]), _texts(one[1], "nodes")) for one in map(_pair, _list(placed))),
        tuple(_text(one[0] if isinstance(one, list) and one else one) for one in _list(failed)),
    )


def read_moves(result: Any) -> Moves:
    """Read what came of an evacuation or a change of group.

    Raises:
        InvalidRequest: it is not shaped as the protocol says.
    """
    moved, failed, jobs = _several(result, 3)
    return Moves(
        tuple(_move(*_several(one, 3)) for one in _list(moved)),
        tuple((_text(name), _text(why)) for name, why in map(_pair, _list(failed))),
        tuple(tuple(_opcode(op) for op in _list(job)) for job in _list(jobs)),
    )


def _move(name: Any, group: Any, nodes: Any) -> tuple[str, str, tuple[str, ...]]:
    return _text(name), _text(group), _texts(nodes, "nodes")


def _opcode(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("OP_ID"), str):
        raise InvalidRequest("a job it wants is no list of operations")
    return value


def _several(value: Any, count: int) -> list[Any]:
    found = _list(value)
    if len(found) != count:
        raise InvalidRequest(f"its result has {len(found)} parts where {count} belong")
    return found


def _pair(value: Any) -> list[Any]:
    return _several(value, 2)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequest("its result has something else where a list belongs")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidRequest("its result has something else where a name belongs")
    return value


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidRequest(f"its result has something else where {what} belong")
    return tuple(value)
