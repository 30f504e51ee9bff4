"""Asking the monitoring agents of all nodes for their load."""

import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

PORT = 1815
_TIMEOUT = 5.0  # seconds for one agent
_LARGEST = 4 << 20  # bytes of one answer
_AT_ONCE = 32


def ask_agents(
    nodes: Sequence[str], collector: str = "cpu-avg-load", *, port: int = PORT
) -> tuple[str, tuple[str, ...]]:
    """Ask every node's agent for one collector's report.

    Returns:
        What ``--mond-data`` reads, a JSON list of nodes with their reports, and the nodes
        that gave no usable answer, which are left out.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(partial(_ask, collector=collector, port=port), nodes)
        told = list(zip(nodes, answers, strict=True))
    found = [{"node": node, "reports": [report]} for node, report in told if report is not None]
    return json.dumps(found), tuple(node for node, report in told if report is None)


def _ask(node: str, *, collector: str, port: int) -> dict[str, Any] | None:
    connection = http.client.HTTPConnection(node, port, timeout=_TIMEOUT)
    try:
        connection.request("GET", f"/1/report/default/{collector}")
        answer = connection.getresponse()
        report = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    return report if isinstance(report, dict) else None
