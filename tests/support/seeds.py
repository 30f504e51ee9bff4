"""How much a run of the simulations tries.

``GANTRY_SIM_SEEDS`` is the number of seeds that each random simulation is run with, and
``GANTRY_SIM_SEED`` the only one. With more seeds than usual, everything is tried exhaustively.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

USUAL = 3


def seeds(usual: int = USUAL) -> list[int]:
    """Return the seeds to run a random simulation with."""
    if one := os.environ.get("GANTRY_SIM_SEED"):
        return [int(one)]
    return list(range(int(os.environ.get("GANTRY_SIM_SEEDS", usual))))


def is_thorough() -> bool:
    """Tell whether time does not matter."""
    return int(os.environ.get("GANTRY_SIM_SEEDS", "0")) > USUAL


def examples(usual: int) -> int:
    """Return how many random examples to try; ten times as many when time does not matter."""
    return 10 * usual if is_thorough() else usual


def chosen(options: Sequence[T], number: int) -> Sequence[T]:
    """Return all options when time does not matter; else one, another for each number."""
    return options if is_thorough() else [options[number % len(options)]]
