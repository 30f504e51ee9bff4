"""The array types of the allocator, and the one way it adds floats.

Scores have to agree with hail's to the last bit, because ties are broken by them; so
floats are added one after another, in node order. ``np.sum`` adds pairwise and must not
be used on them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def ints(values: Sequence[int]) -> Ints:
    """An array of whole numbers, also of none."""
    return np.array(values, dtype=np.int64)


def running_sum(values: Floats) -> Floats:
    """Sum along the last axis, strictly from left to right; of nothing it is 0."""
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    with np.errstate(invalid="ignore"):  # infinite and negatively infinite make no number
        total: Floats = np.add.accumulate(values, axis=-1)[..., -1]
    return total
