"""Ganeti's option syntaxes: ``a=1,no_b,-c`` and ``0:size=10G,mode=ro``.

Source: gnt-instance(8) of Ganeti 3.0.
"""

import re
from collections.abc import Container
from typing import Any

from common.errors import InvalidRequest
from common.units import parse_mib

Values = dict[str, Any]

DEFAULT = "default"  # as a value: back to the default; that of the model, without loading it
SIZES = frozenset(
    {"size", "maxmem", "minmem", "memory"}
)  # keys whose values may have a unit, as 10G

_ACTIONS = ("add", "attach", "detach", "modify", "remove")
_PART = re.compile(r"((?:[^\\,]|\\.)*)(,|\Z)", re.DOTALL)


def split_escaped(text: str) -> list[str]:
    """Split at commas; a backslash keeps the next character as it is.

    Raises:
        InvalidRequest: a backslash at the end.
    """
    parts, position = [], 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise InvalidRequest(f"“{text}” ends in the middle: a backslash needs a character.")
        parts.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        position = match.end()
        if not match[2]:
            return parts


def parse_keyval(text: str) -> Values:
    """Read ``key=value,…``; ``no_key`` is False, ``-key`` None, and a bare ``key`` True.

    Values stay text, for whoever knows their types.

    Raises:
        InvalidRequest: a key is empty or comes twice.
    """
    values: Values = {}
    for part in split_escaped(text) if text else []:
        key, is_pair, value = part.partition("=")
        found: Any = value
        if not is_pair:
            if key.startswith("no_"):
                key, found = key.removeprefix("no_"), False
            elif key.startswith("-"):
                key, found = key.removeprefix("-"), None
            else:
                found = True
        if not key:
            raise InvalidRequest(f"“{text}” has a parameter without a name.")
        if key in values:
            raise InvalidRequest(f"“{text}” sets {key} twice.")
        values[key] = found
    return values


def parse_identkeyval(text: str) -> tuple[str, Values]:
    """Read ``ident:key=value,…`` or a bare ``ident``.

    Raises:
        InvalidRequest: no ident, or what ``parse_keyval`` refuses.
    """
    ident, _, rest = text.partition(":")
    if not ident or "=" in ident:
        raise InvalidRequest(
            f"“{text}” does not say what it is for: begin with a name or number and a colon, "
            "as in 0:size=10G."
        )
    return ident, parse_keyval(rest)


def with_sizes(values: Values) -> Values:
    """Turn the sizes among ``values`` into MiB.

    Raises:
        InvalidRequest: one is no size.
    """
    return {
        key: parse_mib(value) if key in SIZES and _is_size(value) else value
        for key, value in values.items()
    }


def _is_size(value: Any) -> bool:
    return isinstance(value, str) and value != DEFAULT


def parse_devices(texts: list[str]) -> list[Values]:
    """Read ``--disk 0:size=10G --disk 1:size=1G``: one dict each, in the order of the numbers.

    Raises:
        InvalidRequest: the numbers are not 0, 1, 2 …, or a size is none.
    """
    found: dict[int, Values] = {}
    for text in texts:
        number, values = _numbered(text, found)
        found[number] = values
    missing = next((number for number in range(len(found)) if number not in found), None)
    if missing is not None:
        raise InvalidRequest(f"Number {missing} is missing: count from 0, without gaps.")
    return [found[number] for number in sorted(found)]


def parse_numbered(texts: list[str]) -> list[list[Any]]:
    """Read ``--disk 0 --disk 2:size=10G``: the number and the parameters of each.

    Raises:
        InvalidRequest: one begins with no number, or comes twice.
    """
    found: dict[int, Values] = {}
    for text in texts:
        number, values = _numbered(text, found)
        found[number] = values
    return [[number, values] for number, values in found.items()]


def _numbered(text: str, known: Container[int]) -> tuple[int, Values]:
    ident, values = parse_identkeyval(text)
    if not (ident.isascii() and ident.isdigit()):
        raise InvalidRequest(f"“{text}” begins with no number; the first one is 0.")
    if int(ident) in known:
        raise InvalidRequest(f"Number {int(ident)} is given twice.")
    return int(ident), with_sizes(values)


def parse_changes(texts: list[str]) -> list[list[Any]]:
    """Read ``--net add:link=br0 --net 1:ip=192.0.2.7 --net eth2:remove``.

    Returns:
        For each what is done, to which (a number, a name or a UUID; -1 is the last), and the
        parameters.

    Raises:
        InvalidRequest: two things are to be done at once, or something is removed with parameters.
    """
    return [_parse_change(text) for text in texts]


def _parse_change(text: str) -> list[Any]:
    ident, values = parse_identkeyval(text)
    if ident in ("add", "attach", "detach", "remove"):  # the last one
        action, ident = ident, "-1"
    else:
        # “add=VALUE” would be a parameter of that name, which is nobody's.
        told = [word for word in _ACTIONS if values.get(word) is True]
        if len(told) > 1:
            raise InvalidRequest(f"“{text}” asks for {' and '.join(told)}; give one of them.")
        action = told[0] if told else "modify"
        values.pop(action, None)
    if action in ("remove", "detach") and values:
        raise InvalidRequest(f"“{text}” {action}s it, so {', '.join(values)} cannot be set.")
    number = ident.removeprefix("-").isdecimal() and ident.isascii()
    return [action, int(ident) if number else ident, with_sizes(values)]
