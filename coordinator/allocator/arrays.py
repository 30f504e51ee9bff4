"""The array types of the allocator, and the one way it adds floats.

Scores have to agree with hail's to the last bit, because ties are broken by them; so
floats are added one after another, in node order. ``np.sum`` adds pairwise and must not
be used on them.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def running_sum(values: Floats) -> Floats:
    """Sum along the last axis, strictly from left to right; of nothing it is 0."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    with np.errstate(invalid="ignore"):  # infinite and negatively infinite make no number
        total: Floats = np.add.accumulate(values, axis=-1)[..., -1]
    return total


def among(values: Ints, some: Ints, size: int) -> Bools:
    """Per value whether it is one of ``some``; all are indices below ``size``.

    As ``np.isin``, which sorts, and takes ten times as long for a few.
    """
    table = np.zeros(size, dtype=np.bool_)
    table[some] = True
    found: Bools = table[values]
    return found


# What follows takes arrays, and Python's own numbers as well: of a single node these are a hundred
# times faster, and one text of the arithmetic serves both.


def where(condition: Any, yes: Any, no: Any) -> Any:
    """As ``np.where``."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def maximum(one: Any, other: Any) -> Any:
    """As ``np.maximum``; of whole numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return max(one, other)


def opposite(flags: Any) -> Any:
    """As ``~``, which of Python's True makes -2."""
    return ~flags if isinstance(flags, np.ndarray) else not flags


def has_any(flags: Any) -> bool:
    """As ``np.any``."""
    return bool(flags.any()) if isinstance(flags, np.ndarray) else flags


def ratio(amount: Any, unit: Any) -> Any:
    """As ``/`` of arrays: infinite, or no number, where the unit is 0."""
    if isinstance(unit, np.ndarray):
        with np.errstate(divide="ignore", invalid="ignore"):
            return amount / unit
    if unit == 0:
        return math.nan if amount == 0 or amount != amount else math.copysign(math.inf, amount)
    return amount / unit
