"""Until when an order may be carried out, by the clock of the node it goes to; pure.

A reading that came with an answer tells that the node's clock shows at least as much since the
answer is here. What it was late by, and what the two clocks may have drifted apart since, makes
an order expire early, never after its caller has given up.
"""

from common.names import NodeId
from common.rpc.clock import Reading

DRIFT = 0.001  # of the time passed; clocks that are kept right differ by less

_Heard = tuple[Reading, float]  # and when, by our own clock


class Clocks:
    """The newest reading of each node's clock."""

    def __init__(self) -> None:
        self._heard: dict[NodeId, _Heard] = {}

    def heard(self, node: NodeId, reading: Reading, now_s: float) -> None:
        """Note what ``node`` told at ``now_s`` or before, by our own clock."""
        self._heard[node] = reading, now_s

    def good_until(self, node: NodeId, deadline_s: float, now_s: float) -> Reading | None:
        """Return what the node's clock will show at ``deadline_s`` at least.

        None if nothing was heard of it yet.
        """
        if node not in self._heard:
            return None
        reading, heard_s = self._heard[node]
        at_s = reading.at_s + (deadline_s - heard_s) - DRIFT * (now_s - heard_s)
        return Reading(reading.process, at_s)
