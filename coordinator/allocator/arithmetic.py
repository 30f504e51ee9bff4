"""Arithmetic of arrays and of Python's own numbers alike, so that one text of it serves both.

Of a single node numbers are a hundred times faster, and need no NumPy. Flags are turned round by
``^ True``, since ``~`` makes -2 of Python's True.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

from coordinator.allocator.several import Several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from enum import IntEnum
    from typing import Any


def is_array(value: Any) -> bool:
    """Whether it is an array, of any shape, and not a number of Python's."""
    return hasattr(value, "dtype")


def where(condition: Any, yes: Any, no: Any) -> Any:
    """As ``np.where``."""
    if isinstance(condition, bool | int):
        return yes if condition else no
    import numpy as np

    return np.where(condition, yes, no)


def maximum(one: Any, other: Any) -> Any:
    """As ``np.maximum``; of whole numbers."""
    if not is_array(one) and not is_array(other):
        return max(one, other)
    import numpy as np

    return np.maximum(one, other)


def minimum(one: Any, other: Any) -> Any:
    """As ``np.minimum``; of whole numbers."""
    if not is_array(one) and not is_array(other):
        return min(one, other)
    import numpy as np

    return np.minimum(one, other)


def whole(value: Any, *, most: float, unknown: float) -> Any:
    """The whole part of a float, which may be more than ``most``, or no number at all."""
    if not is_array(value):
        return math.floor(unknown if value != value else min(value, most))
    import numpy as np

    return np.floor(np.minimum(np.where(np.isnan(value), unknown, value), most)).astype(np.int64)


def has_any(flags: Any) -> bool:
    """As ``np.any``."""
    return bool(flags.any()) if is_array(flags) else flags


def ratio(amount: Any, unit: Any) -> Any:
    """As ``/`` of arrays: infinite, or no number, where the unit is 0."""
    if isinstance(unit, float | int):
        if unit:
            return amount / unit
        return math.nan if amount == 0 or amount != amount else math.copysign(math.inf, amount)
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return amount / unit


def above_zero(value: Any) -> Any:
    """What is above 0; 0 for what is not, or is no number. Of numbers side by side as of one."""
    if isinstance(value, float):
        return value if value > 0 else 0.0
    if isinstance(value, Several):
        return Several([one if one > 0 else 0.0 for one in value])
    import numpy as np

    return np.fmax(0, value)


def root(value: Any) -> Any:
    """As ``np.sqrt``."""
    if isinstance(value, float):
        return math.sqrt(value)
    if isinstance(value, Several):
        return Several(map(math.sqrt, value))
    import numpy as np

    return np.sqrt(value)


def replaced(n: float, sums: Any, variances: Any, before: Any, after: Any) -> tuple[Any, Any]:
    """Sum and variance after one of ``n`` figures changed; rounding may not make it negative.

    A figure that is no number makes the variance 0, as in hail.
    """
    shift = after - before
    growth = after * after - before * before
    change = (growth * n - shift * (2 * sums)) - shift * shift
    return shift + sums, above_zero(change / (n * n) + variances)


def like(vector: Any, values: Sequence[float]) -> Any:
    """Numbers side by side, in the form that ``vector`` has."""
    if isinstance(vector, Several):
        return Several(values)
    import numpy as np

    return np.array(values, dtype=np.float64)


def unwarned(vector: Any) -> AbstractContextManager[object]:
    """Reckon without warnings of what is infinite or no number, of which arrays would warn."""
    if not is_array(vector):
        return nullcontext()
    import numpy as np

    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def added(values: Any) -> Any:
    """Strictly one after the other; ``sum`` of floats compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def first_failure(checks: Sequence[tuple[Any, IntEnum]]) -> Any:
    """The code of the first check that holds; 0 where none does. The first one has the shape."""
    if not is_array(checks[0][0]):
        return next((int(reason) for failed, reason in checks if failed), 0)
    import numpy as np

    codes = np.zeros(np.broadcast(*(failed for failed, _ in checks)).shape, dtype=np.int64)
    for failed, reason in reversed(checks):
        if has_any(failed):
            codes = np.where(failed, np.int64(reason), codes)
    return codes
