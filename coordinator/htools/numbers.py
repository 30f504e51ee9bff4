"""Numbers as Ganeti's tools read them: less is allowed than Python would take."""

import re

_WHOLE = re.compile(r"\s*(?P<sign>-?)\s*(?P<digits>0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9]+)")
_REAL = re.compile(
    r"\s*(?P<sign>-?)\s*(?P<digits>[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|NaN|Infinity)"
)
_LARGEST = 1 << 53  # more is no size of anything; floats do not tell them apart


def whole(text: str) -> int:
    """Read a whole number; blanks may precede it, but nothing may follow.

    Raises:
        ValueError: it is none, or beyond all reason.
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError("is no whole number")
    digits = found["digits"]
    value = int(digits, 0) if digits[1:2] in {"x", "X", "o", "O"} else int(digits)
    if value > _LARGEST:
        raise ValueError("is too large")
    return -value if found["sign"] else value


def real(text: str) -> float:
    """Read a number, which may be infinite or NaN; there is a digit on each side of a point.

    Raises:
        ValueError: it is none.
    """
    found = _WHOLE.fullmatch(text)
    if found is not None:
        return float(whole(text))
    found = _REAL.fullmatch(text)
    if found is None:
        raise ValueError("is no number")
    value = float(found["digits"])
    return -value if found["sign"] else value


def amount(text: str) -> float:
    """Read a number that says how much there is of something.

    Raises:
        ValueError: it is none, or beyond all reason.
    """
    value = real(text)
    if not abs(value) <= _LARGEST:
        raise ValueError("is no amount")
    return value
