"""How much of what they could try a run of the simulations does try.

``GANTRY_SIM_CARE`` is ``usual`` for what has to pass, as in ``deploy/test``; ``quick``, which it is
if nothing is told, for whoever is at work and runs them all the time: the same tests try less; and
``thorough`` to leave nothing out.

``GANTRY_SIM_SEEDS`` is the number of seeds that each random simulation is run with, and
``GANTRY_SIM_SEED`` the only one. More seeds than usual are thorough.
"""

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

T = TypeVar("T")

USUAL = 3


class Care(IntEnum):
    QUICK = 1
    USUAL = 2
    THOROUGH = 3


def care() -> Care:
    """Return how much is tried.

    Raises:
        ValueError: there is no such word.
    """
    if int(os.environ.get("GANTRY_SIM_SEEDS", "0")) > USUAL:
        return Care.THOROUGH
    word = os.environ.get("GANTRY_SIM_CARE", "quick")
    if word.upper() not in Care.__members__:
        words = ", ".join(each.lower() for each in Care.__members__)
        raise ValueError(f"GANTRY_SIM_CARE is {word}; it can be {words}.")
    return Care[word.upper()]


def is_thorough() -> bool:
    """Tell whether time does not matter."""
    return care() is Care.THOROUGH


def is_quick() -> bool:
    """Tell whether somebody waits for it."""
    return care() is Care.QUICK


def seeds(usual: int = USUAL) -> list[int]:
    """Return the seeds to run a random simulation with."""
    if one := os.environ.get("GANTRY_SIM_SEED"):
        return [int(one)]
    count = (usual + 1) // 2 if is_quick() else usual
    return list(range(int(os.environ.get("GANTRY_SIM_SEEDS", count))))


def examples(usual: int) -> int:
    """Return how many random examples to try; ten times as many when time does not matter."""
    return {Care.QUICK: usual // 2, Care.USUAL: usual, Care.THOROUGH: 10 * usual}[care()]


def one_in(usual: int) -> int:
    """Return of how many cases one is tried: of twice as many in a hurry; or each."""
    return {Care.QUICK: 2 * usual, Care.USUAL: usual, Care.THOROUGH: 1}[care()]


def chosen(options: Sequence[T], number: int) -> Sequence[T]:
    """Return all options when time does not matter; else one, another for each number."""
    return options if is_thorough() else [options[number % len(options)]]
