"""Sending an answer in parts, so that one which nobody takes does not stay in memory."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from common import web

PART = 256 * 1024  # bytes; what is smaller goes at once
PATIENCE_S = 30.0  # for a client to take a part


async def send(
    request: web.BaseRequest,
    status: HTTPStatus,
    body: bytes,
    content_type: str,
    headers: Mapping[str, str],
) -> web.StreamResponse:
    """Answer with ``body``; a client that does not take it is left.

    Raises:
        ConnectionError: the client is gone.
    """
    if len(body) <= PART or request.method == "HEAD":
        return web.Response(
            status=status, body=body, headers={**headers, "Content-Type": content_type}
        )
    response = web.StreamResponse(status=status, headers={**headers, "Content-Type": content_type})
    response.content_length = len(body)
    await response.prepare(request)
    rest = memoryview(body)
    try:
        while rest:
            async with asyncio.timeout(PATIENCE_S):
                await response.write(bytes(rest[:PART]))
            rest = rest[PART:]
    except TimeoutError as error:
        if request.transport:
            request.transport.abort()
        raise ConnectionResetError("The client does not take its answer.") from error
    await response.write_eof()
    return response
