"""What comes of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.names import NodeName
from coordinator.allocator.refusal import Reason


class Refused(Exception):
    """A request that cannot be met; the text says why, in hail's words.

    Attributes:
        refused: why, per node, where that is known.
    """

    def __init__(self, info: str, refused: Mapping[NodeName, Reason] | None = None) -> None:
        super().__init__(info)
        self.refused = refused or {}


@dataclass(frozen=True, slots=True)
class Options:
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


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that goes to standard output.

    Attributes:
        info: for people.
        result: nodes, or lists of what moved; JSON values.
        after: where instances are afterwards, by index: their nodes, primary first.
        created: new instances' nodes, by name.
        refused: why, per node that could not take part; for the curious.
    """

    info: str
    result: Any
    after: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    created: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    refused: Mapping[NodeName, Reason] = field(default_factory=dict)
