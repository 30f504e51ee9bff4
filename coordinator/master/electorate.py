"""Who has a say in who becomes master, by one state's list of nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from msgspec.structs import replace

from common.model.node import Node
from common.names import NodeName


@dataclass(frozen=True)
class Electorate:
    """Equal ones have the same names in them; where the nodes are to be found does not matter."""

    names: frozenset[NodeName]
    candidates: frozenset[NodeName]
    voters: dict[NodeName, Node] = field(compare=False)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Self:
        # Offline ones are asked as well: they may be back, with newer data. In an order that does
        # not depend on where the nodes came from: who is asked first is to be the same each time.
        ordered = sorted(nodes, key=lambda node: node.name)
        voters = {node.name: replace(node, offline=False) for node in ordered}
        candidates = frozenset(node.name for node in voters.values() if node.master_candidate)
        return cls(frozenset(voters), candidates, voters)
