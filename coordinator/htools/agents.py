"""Asking the monitoring agents of all nodes for their load."""

import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PORT = 1815
_TIMEOUT = 5.0  # seconds for one agent
_LARGEST = 4 << 20  # bytes of one answer
_AT_ONCE = 32


def ask_agents(nodes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Ask every node's agent for all reports.

    Returns:
        What ``--mond-data`` reads, a JSON list of nodes with their reports, and the nodes
        that gave no usable answer, which are left out.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(_ask, nodes))
    found = [
        {"node": node, "reports": reports}
        for node, reports in zip(nodes, answers, strict=True)
        if reports is not None
    ]
    silent = tuple(node for node, reports in zip(nodes, answers, strict=True) if reports is None)
    return json.dumps(found), silent


def _ask(node: str) -> list[Any] | None:
    connection = http.client.HTTPConnection(node, PORT, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/1/report/all")
        answer = connection.getresponse()
        reports = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return reports if isinstance(reports, list) else None
