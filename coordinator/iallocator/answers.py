"""What comes of a request."""

from __future__ import annotations

from types import MappingProxyType

from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from common.names import NodeName
    from coordinator.allocator.refusal import Reason
    from coordinator.iallocator.opcodes import Opcode


class Refused(Exception):
    """A request that cannot be met; the text says why, in hail's words.

    Attributes:
        refused: why, per node, where that is known.
    """

    def __init__(self, info: str, refused: Mapping[NodeName, Reason] | None = None) -> None:
        super().__init__(info)
        self.refused = refused or {}


class Options(Record):
    """What the command line says about how to choose.

    Attributes:
        check_capacity: whether every node has to stay one that could be emptied.
        among: only these nodes, whatever the request says.
        strict: copy hail even where it is plainly wrong.
    """

    check_capacity: bool = True
    ignore_soft_errors: bool = False
    among: frozenset[str] | None = None
    strict: bool = False


class Moves(Record):
    """What an evacuation, a change of group or a balancing comes to, in the protocol's order.

    Attributes:
        moved: instance, group it goes to, nodes afterwards.
        failed: instance and why it stays.
        jobs: each a list of opcodes.
    """

    moved: tuple[tuple[str, str, tuple[str, ...]], ...]
    failed: tuple[tuple[str, str], ...]
    jobs: tuple[tuple[Opcode, ...], ...]


class Answer(Record):
    """An answer that goes to standard output.

    Attributes:
        info: for people.
        result: nodes, or ``Moves``; JSON values.
        after: where instances are afterwards, by index: their nodes, primary first.
        created: new instances' nodes, by name.
        refused: why, per node that could not take part; for the curious.
    """

    info: str
    result: Any
    after: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    created: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    refused: Mapping[NodeName, Reason] = MappingProxyType({})
