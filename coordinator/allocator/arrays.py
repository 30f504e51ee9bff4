"""The array types of the allocator.

Scores have to agree with hail's to the last bit, because ties are broken by them; so
floats are added one after another, in node order. ``np.sum`` along the last axis adds pairwise
and must not be used on them; ``arithmetic.added`` does for numbers.
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
