"""Which life of noded each node is in: whoever was started anew may have a disk of last week.

With each answer a node names the life of its noded; what was told to another one is told again.
"""

from typing import NamedTuple

from common.bell import Bell
from common.names import NodeId

AGAIN_S = 10.0  # between two lives that are counted: a node may name another with each answer


class _Life(NamedTuple):
    process: str
    number: int
    until_s: float  # by the loop's clock, when another may be counted


class Lives:
    """Counts the lives of each node, as far as they were heard of."""

    def __init__(self) -> None:
        self._lives: dict[NodeId, _Life] = {}
        self.next = Bell()  # another is counted
        self.count = 0  # of all that were not a node's first

    def number(self, node: NodeId) -> int:
        """Return which life of a node this is; 0 for the first that was heard of, or none."""
        known = self._lives.get(node)
        return known.number if known else 0

    def heard(self, node: NodeId, process: str, now_s: float) -> None:
        """Note that ``node`` answered at ``now_s`` in this life.

        One that comes too soon after another is counted with a later answer.
        """
        known = self._lives.get(node)
        if known is None:
            self._lives[node] = _Life(process, 0, now_s)
        elif known.process != process and now_s >= known.until_s:
            self._lives[node] = _Life(process, known.number + 1, now_s + AGAIN_S)
            self.count += 1
            self.next.ring()
