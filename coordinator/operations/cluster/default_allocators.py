"""Which allocators the cluster asks where none is named, and the options they are given."""

import re
from typing import Any

from common.errors import InvalidRequest
from common.model.cluster import Cluster
from coordinator.operations.placement.allocators import RequestType

DEFAULT, NONE = "default", "none"  # words that stand for values
SEPARATOR = ":"  # between allocators, as between directories of a search path

_MEMORY = re.compile(r"[0-9]{1,10}")  # in MiB; what is longer is no machine's


def edited_requests(
    present: Cluster, given: dict[str, str | list[str]]
) -> dict[str, tuple[str, ...]]:
    """Lay allocators by kind of request over the present ones; “default” takes a kind away.

    Raises:
        InvalidRequest: there is no such kind.
    """
    by_request = {_request(kind): _allocators(names) for kind, names in given.items()}
    return _merged(present.default_iallocators, by_request)


def edited_options(present: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Lay options of allocators over the present ones; “default” takes one away.

    Raises:
        InvalidRequest: one is no option, or its value is none of it.
    """
    options = {
        key: None if value == DEFAULT else _option(key, value) for key, value in given.items()
    }
    return _merged(present, options)


def _merged(present: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Lay values over the present ones; None takes one away."""
    merged = {**present, **given}
    return {key: merged[key] for key in sorted(merged) if merged[key] is not None}


def _request(name: str) -> str:
    try:
        return str(RequestType(name))
    except ValueError as error:
        kinds = ", ".join(RequestType)
        raise InvalidRequest(f"Allocators are not asked for “{name}”, but for {kinds}.") from error


def _allocators(value: str | list[str]) -> tuple[str, ...] | None:
    if value == DEFAULT:
        return None
    if isinstance(value, str):
        value = [] if value in (NONE, "") else value.split(SEPARATOR)
    return tuple(value)


def _option(key: str, value: Any) -> Any:
    """Refuse what could not be one word of a command line, or be taken for another option."""
    if not key.replace("-", "").isalnum() or key.startswith("-"):
        raise InvalidRequest(f"“{key}” is no option: give its name without the dashes before it.")
    if not isinstance(value, str | int | float | bool) or "\0" in str(value):
        raise InvalidRequest(f"The option “{key}” of allocators takes a text or a number.")
    if key == "static-kvm-node-memory" and not _MEMORY.fullmatch(str(value)):
        raise InvalidRequest(f"static-kvm-node-memory is a number of MiB, not “{value}”.")
    return value
