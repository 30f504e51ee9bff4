"""What the agent tells, and at which paths: those of Ganeti's monitoring agent, version 1; pure.

Source: ganeti-mond(8), Ganeti 3.0; the programs that read it are ``hail``, ``hbal`` and others
with ``--mond``, Ganeti's and ours.
"""

from typing import Any

from noded.monitor.cpu_load import Load

PROTOCOL = 1

_NAME = "cpu-avg-load"
_PERFORMANCE = 0  # the kind of collector that tells figures, not a status
_CATEGORY = "default"  # in paths, for a collector without any


def answer(path: str, load: Load, now_ns: int) -> Any | None:
    """Return the JSON document at a path; None if there is none.

    Args:
        path: of the request, without its query.
        load: of the processors.
        now_ns: nanoseconds since 1970.
    """
    match path.rstrip("/").split("/"):
        case [""]:
            return [PROTOCOL]
        case ["", "1", "list", "collectors"]:
            return [[_PERFORMANCE, None, _NAME]]
        case ["", "1", "report", "all"]:
            return [_cpu_report(load, now_ns)]
        case ["", "1", "report", category, name] if (category, name) == (_CATEGORY, _NAME):
            return _cpu_report(load, now_ns)
        case _:
            return None


def _cpu_report(load: Load, now_ns: int) -> dict[str, Any]:
    return {
        "name": _NAME,
        "version": "B",  # part of the agent
        "format_version": 1,
        "timestamp": now_ns,
        "category": None,
        "kind": _PERFORMANCE,
        "data": {"cpu_number": len(load.each), "cpus": load.each, "cpu_total": load.total},
    }
