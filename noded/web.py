"""The parts of aiohttp's server that noded uses: all of ``aiohttp.web`` is 1.3 MiB more."""

from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from aiohttp.web_ws import WebSocketResponse

__all__ = (
    "BaseRequest",
    "RequestHandler",
    "Response",
    "Server",
    "StreamResponse",
    "WebSocketResponse",
)
