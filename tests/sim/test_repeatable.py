"""A seed tells one story, in whatever process: else nobody could look for what it found."""

import asyncio
import os
import subprocess
import sys

from common.rpc.server import Reply
from tests.sim.schedules import play
from tests.support.network import Fault, Trip

SEED, LENGTH_S = 5, 100.0  # of a schedule with five nodes, and not all of them candidates
TELL = f"from tests.sim.test_repeatable import tell; print(tell({SEED}, {LENGTH_S}))"


class Listening(Fault):
    """Writes down every call, with its number, which chance gave it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def going(self, trip: Trip) -> Reply | None:
        now_s = asyncio.get_running_loop().time()
        self.heard.append(f"{now_s:.6f} {trip.source}: {trip}, call {trip.envelope.call}")
        return None


def tell(seed: int, length_s: float) -> str:
    """Return all that happens with a seed."""
    listening = Listening()
    story = play(seed, length_s, listening)
    return "\n".join((*story, *listening.heard))


def test_a_seed_tells_the_same_story_whatever_the_order_of_sets() -> None:
    one, other = (
        subprocess.check_output(
            [sys.executable, "-c", TELL], env=os.environ | {"PYTHONHASHSEED": order}, text=True
        ).splitlines()
        for order in ("1", "2")
    )
    assert len(one) > LENGTH_S
    assert one == other
