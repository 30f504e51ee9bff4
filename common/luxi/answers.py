"""The server's half of LUXI: reading requests, writing answers."""

from typing import Any

import msgspec

from common.errors import GntError
from common.luxi.failures import to_ganeti, to_wire
from common.luxi.framing import frame
from common.messages import Report, from_json


class Request(Report):
    """``version`` is what the client speaks, if it says so; the answer echoes it."""

    method: str
    args: tuple[Any, ...]
    version: int | None = None


def read_request(text: bytes) -> Request:
    """Read one message.

    Raises:
        InvalidRequest: no JSON, or not of the form ``{"method": …, "args": […]}``.
    """
    return from_json(text, Request, what="the LUXI request")


def success(result: Any, request: Request) -> bytes:
    """Return the framed answer to a request that went well."""
    return _answer({"success": True, "result": result}, request.version)


def failure(error: GntError, request: Request) -> bytes:
    """Return the framed answer to a request that failed, for Ganeti's clients and for ours."""
    told = {"success": False, "result": to_ganeti(error), "error": to_wire(error)}
    return _answer(told, request.version)


def unreadable(error: GntError) -> bytes:
    """Return the framed answer to what was no request; the connection is closed after it."""
    return _answer({"success": False, "result": error.message, "error": to_wire(error)}, None)


_encoder = msgspec.json.Encoder()


def _answer(told: dict[str, Any], version: int | None) -> bytes:
    return frame(_encoder.encode(told if version is None else told | {"version": version}))
