"""Answers that are too long for a datagram tell less of each instance; pure.

What was left out is missing, never empty: an instance without ``disks`` may have some.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from common.confd_snapshot import PublishedInstance, Snapshot
from common.messages import to_json

_Shorten = Callable[[PublishedInstance], Any]
_PARTS = ("disks", "nics")
_NAMES = ("uuid", "name")
PAGE = 40_000  # bytes of members that are told at a time; quotes are escaped, which adds to it


def forms(answer: Any) -> Iterator[Any]:
    """Yield an answer as it is, then with instances without their parts, then with names alone.

    Ends after the first form if no instances are in it.
    """
    yield answer
    for shorten in (_without_parts, _names):
        shorter = _with_instances(answer, shorten)
        if shorter is answer:
            return
        yield shorter


def _with_instances(part: Any, shorten: _Shorten) -> Any:
    """Return something with other forms of the instances in it; itself if there are none."""
    match part:
        case PublishedInstance():
            return shorten(part)
        case Snapshot():
            told = {name: getattr(part, name) for name in part.__struct_fields__}
            return told | {"instances": _with_instances(part.instances, shorten)}
        case dict() if part:
            changed = {key: _with_instances(value, shorten) for key, value in part.items()}
            return changed if any(changed[key] is not part[key] for key in part) else part
        case list() | tuple() if part:
            row = [_with_instances(value, shorten) for value in part]
            return row if any(new is not old for new, old in zip(row, part, strict=True)) else part
        case _:
            return part


def _without_parts(instance: PublishedInstance) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.structs.asdict(instance)
    return {name: value for name, value in told.items() if name not in _PARTS}


def _names(instance: PublishedInstance) -> dict[str, Any]:
    return {name: getattr(instance, name) for name in _NAMES}


def page(members: Mapping[str, Any], after: str) -> dict[str, Any]:
    """Return as many members as fit, by their keys, of those after a key; the last page is empty.

    The first is told whatever its size.
    """
    told: dict[str, Any] = {}
    size = 0
    for key in sorted(key for key in members if key > after):
        text = to_json(members[key])
        size += len(key) + len(text) + text.count(b'"')
        if told and size > PAGE:
            break
        told[key] = members[key]
    return told
