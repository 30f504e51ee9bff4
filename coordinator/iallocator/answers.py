"""What comes of a request."""

from __future__ import annotations

from types import MappingProxyType

from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from common.names import NodeName
    from coordinator.allocator.refusal import Reason
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.opcodes import Opcode

Moved = tuple[str, str, tuple[str, ...]]
"""An instance, the group it goes to, its nodes afterwards."""


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


def moved_to(cluster: Snapshot, instance: int, nodes: Sequence[int]) -> Moved:
    """The names of an instance, of the nodes it goes to, and of their group, given by index."""
    home = cluster.nodes[nodes[0]]
    names = tuple(cluster.nodes[node].name for node in nodes)
    return cluster.instances[instance].name, cluster.groups[home.group].name, names


class Moves(Record):
    """What an evacuation, a change of group or a balancing comes to, in the protocol's order.

    Attributes:
        failed: instance and why it stays.
        jobs: each a list of opcodes.
    """

    moved: tuple[Moved, ...]
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
