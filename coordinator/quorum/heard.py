"""What nodes told, in this round of questions and in those before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from common.model.stamp import Stamp
from common.names import NodeName


class Deaf(NamedTuple):
    """A node's answer that it does not listen to who asks."""

    listed: tuple[NodeName, ...]  # to whom it listens
    age: tuple[int, int] | None = None  # of its roster, as of a state; None if it does not tell

    def may_know_more(self, than: Stamp) -> bool:
        """Tell whether its roster can be newer than a state.

        Older is one that was not told yet whom that state has as candidates: its node was away.
        """
        return self.age is None or self.age >= than.age


@dataclass(frozen=True, slots=True)
class Heard:
    """No word of the operator's goes below what was heard once, unless it says so."""

    seen: dict[NodeName, Stamp] = field(default_factory=dict)  # the newest that each node showed
    deaf: dict[NodeName, Deaf] = field(default_factory=dict)

    def shows(self, stamps: Mapping[NodeName, Stamp]) -> None:
        """Remember states that were shown."""
        for node, stamp in stamps.items():
            self.seen[node] = max(stamp, self.seen.get(node, stamp), key=lambda each: each.age)

    def refuses(self, node: NodeName, answer: Deaf) -> None:
        """Remember that a node does not listen."""
        self.deaf[node] = answer

    def listens(self, node: NodeName) -> None:
        """Note that a node does listen, now at least."""
        self.deaf.pop(node, None)
