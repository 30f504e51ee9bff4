"""Find what an operator may have meant by a name that nothing has."""

from collections.abc import Iterable
from typing import Any, TypeVar

from common.errors import NotFound
from common.natural import natural_key

MOST_COMPARED = 2000  # names; comparing more with a wrong one would take too long
MOST_NAMED = 5

T = TypeVar("T")


def guess(items: Iterable[T], kind: str, ref: str) -> T:
    """Return the only thing whose name begins with ``ref`` and a dot.

    Raises:
        NotFound: there is none, or there are several; names them, or what comes near.
    """
    named: list[Any] = list(items)
    found = [item for item in named if ref and item.name.startswith(f"{ref}.")]
    if len(found) == 1:
        only: T = found[0]
        return only
    names = sorted((item.name for item in found), key=natural_key)
    if names:
        told = f"“{ref}” may be {', '.join(names[:MOST_NAMED])}: say more of the name."
        raise NotFound(told, **{kind: ref})
    from difflib import get_close_matches  # commands import this file, and seldom get here

    near = (
        ()
        if len(named) > MOST_COMPARED
        else get_close_matches(ref, [item.name for item in named], n=1)
    )
    hint = f" Did you mean {near[0]}?" if near else ""
    raise NotFound(f"There is no {kind} “{ref}” in this cluster.{hint}", **{kind: ref})


def a(noun: str) -> str:
    """Put the article before a noun."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
