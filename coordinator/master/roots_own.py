"""What only root of the master may order, although others may use the socket.

Who gives orders to nodes has all power over them, as their root. So who gets to be one of those,
by joining or by becoming a candidate, is no matter of the daily work; nor is the end of it all.
"""

import os
import socket
import struct
from typing import Any

from common.errors import GntError, InvalidRequest
from common.luxi.answers import Request
from coordinator.operations.base import read_operation

ROOT = 0
_FOR_ROOT = frozenset({"RestUsers", "ChangeRestUsers"})
_SUBMITTING = frozenset({"SubmitJob", "SubmitJobToDrainedQueue"})
_SUBMITTING_MANY = "SubmitManyJobs"
_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group


def user_behind(connection: socket.socket) -> int:
    """Return who has connected to a unix socket. Source: unix(7), SO_PEERCRED."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(told)
    return int(user)


def check_may(request: Request, user: int) -> None:
    """Refuse an order that is root's from anybody else.

    The coordinator's own user is no less than root: it has the key by which nodes obey.

    Raises:
        InvalidRequest: names the operation.
    """
    if user in (ROOT, os.geteuid()):
        return
    if request.method in _FOR_ROOT:
        raise InvalidRequest(
            f"{request.method} is for root of the master: it is about who may give orders over "
            "the network. Give the command as root."
        )
    for wire in _operations(request):
        if isinstance(wire, dict) and _is_for_root(wire):
            raise InvalidRequest(
                f"{wire['OP_ID']} with these parameters is for root of the master: it decides "
                "who has power over all nodes. Give the command as root.",
                operation=wire["OP_ID"],
            )


def _operations(request: Request) -> list[Any]:
    """Return what a request wants done, as far as it has a form; the rest is refused later."""
    jobs: Any = ()
    if request.method in _SUBMITTING:
        jobs = request.args[:1]
    elif request.method == _SUBMITTING_MANY and request.args:
        jobs = request.args[0]
    if not isinstance(jobs, list | tuple):
        return []
    return [wire for job in jobs if isinstance(job, list) for wire in job]


def _is_for_root(wire: dict[str, Any]) -> bool:
    try:
        return read_operation(wire).is_for_root()
    except GntError:
        return False  # it will be refused for what it is
