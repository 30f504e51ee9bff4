"""Until when an order is good, in the clock of the node that carries it out.

Clocks of two nodes need not agree, and time passes on the way; so a node tells with each answer
what its own clock shows, and orders name a moment of that clock. Once noded is started anew
nothing that was meant for the process before is good any more: it has forgotten which calls it
had answered.
"""

import math
from typing import NamedTuple, Self

SHOWN, GOOD_UNTIL = "Gantry-Clock", "Gantry-Good-Until"
LONGEST_PROCESS = 64  # characters


class Reading(NamedTuple):
    """A moment of a node's clock."""

    process: str  # names one life of noded
    at_s: float  # since whenever; only goes forward

    def header(self) -> str:
        return f"{self.process} {self.at_s:.3f}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``header`` wrote.

        Raises:
            ValueError: it is something else.
        """
        process, _, seconds = text.partition(" ")
        # What a node says here is said back to it, in the head of a request.
        is_word = process.isascii() and process.isprintable() and len(process) <= LONGEST_PROCESS
        if not process or not is_word or not math.isfinite(at_s := float(seconds)):
            raise ValueError(f"{text[:80]!r} is no moment of a node's clock")
        return cls(process, at_s)
