"""What an allocator program answered, checked as far as the protocol says what it has to be."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from common.errors import InvalidRequest
from common.messages import Report, from_builtins, from_json
from coordinator.iallocator.answers import Moves

_Nodes = tuple[str, ...]
_Left = str | Annotated[tuple[str, ...], Meta(min_length=1)]  # a name; a reason may follow it
_Allocations = tuple[tuple[tuple[str, _Nodes], ...], tuple[_Left, ...]]
_Job = tuple[dict[str, Any], ...]  # opcodes
_Moves = tuple[tuple[tuple[str, str, _Nodes], ...], tuple[tuple[str, str], ...], tuple[_Job, ...]]


class Response(Report):
    """The three parts of an answer; ``result`` is not looked at yet, and ``nodes`` in old ones."""

    success: bool
    info: str
    result: list[Any] | None = None
    nodes: list[Any] | None = None


def read_response(text: str) -> Response:
    """Read what a program printed.

    Raises:
        InvalidRequest: it is no answer.
    """
    return from_json(text.encode(), Response, what="its answer")


def read_nodes(response: Response, count: int) -> tuple[str, ...]:
    """Read the nodes of an allocation or a relocation.

    Raises:
        InvalidRequest: they are not as many as asked for, or one comes twice.
    """
    nodes: _Nodes = _result(response, _Nodes)
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


def read_allocations(response: Response) -> dict[str, _Nodes]:
    """Read the nodes of many new instances, by name; those that fit nowhere are left out.

    Raises:
        InvalidRequest: it is not shaped as the protocol says.
    """
    placed, _ = _result(response, _Allocations)
    return dict(placed)


def read_moves(response: Response) -> Moves:
    """Read what came of an evacuation or a change of group.

    Raises:
        InvalidRequest: it is not shaped as the protocol says.
    """
    moves = Moves(*_result(response, _Moves))
    if not all(isinstance(op.get("OP_ID"), str) for job in moves.jobs for op in job):
        raise InvalidRequest("a job it wants is no list of operations")
    return moves


def _result(response: Response, kind: Any) -> Any:
    result = response.nodes if response.result is None else response.result
    return from_builtins(result, kind, what="its result")
