"""Arithmetic of arrays and of Python's own numbers alike, so that one text of it serves both.

Of a single node numbers are a hundred times faster, and need no NumPy. Flags are turned round by
``^ True``, since ``~`` makes -2 of Python's True.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
