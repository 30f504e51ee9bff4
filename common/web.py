"""The parts of aiohttp's server that daemons use: all of ``aiohttp.web`` is 1.3 MiB more."""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from aiohttp.web_ws import WebSocketResponse

from common.chunked import Chunks, is_coded, is_in_chunks, with_length

LONGEST_HEAD = 8192  # bytes of a request before its body
MOST_AHEAD = 2  # requests that may come before the first of them is answered
ANSWER_S = 0.01  # for the answer to a refused request to get out
WHY = "This request is longer than it may be, or does not say how long it is."
_REFUSED = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: %b\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b"
)

log = logging.getLogger(__name__)

__all__ = (
    "BaseRequest",
    "BoundedHandler",
    "BoundedServer",
    "RequestHandler",
    "Response",
    "StreamResponse",
    "WebSocketResponse",
)

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)


Explain = Callable[[int, str], tuple[bytes, str]]  # of a status, and why: a body, and its type


def _in_plain_text(_: int, why: str) -> tuple[bytes, str]:
    return f"{why}\n".encode(), "text/plain; charset=utf-8"


class BoundedServer(Server):
    """Takes in no more of a request than what its head has promised, and no long heads."""

    def __init__(
        self,
        handle: Callable[[BaseRequest], Awaitable[StreamResponse]],
        *,
        idle_s: float,
        most_body: int | None = None,
        most_in_chunks: int = 0,
        explain: Explain = _in_plain_text,
    ) -> None:
        """Answer with ``handle``; close what sends no whole request head for ``idle_s``.

        Bodies of more than ``most_body`` bytes are refused unseen; ``explain`` says so to clients.
        Those that do not tell their length are waited for, up to ``most_in_chunks`` bytes.
        """
        super().__init__(handle)
        self._idle_s, self._most_body, self._explain = idle_s, most_body, explain
        self._most_in_chunks = most_in_chunks

    def __call__(self) -> RequestHandler:
        return BoundedHandler(
            self,
            most_body=self._most_body,
            most_in_chunks=self._most_in_chunks,
            explain=self._explain,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=self._idle_s,
            lingering_time=0.0,
            logger=_OneLine(),
        )


class BoundedHandler(RequestHandler):
    """Looks at the frame of requests before aiohttp does, whose parser takes what it gets.

    A head is passed on when all of it is there. Bodies have to tell their length, or are short:
    a body in a million pieces is a million pieces of work.
    """

    __slots__ = (
        "_body_left", "_chunks", "_explain", "_head", "_head_before_chunks", "_is_refused",
        "_most_in_chunks", "most_body",
    )  # fmt: skip

    def __init__(
        self,
        *arguments: Any,
        most_body: int | None,
        most_in_chunks: int,
        explain: Explain,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._explain = explain
        self.most_body = most_body  # bytes; None: whatever the handler reads
        self._most_in_chunks = most_in_chunks
        self._chunks: Chunks | None = None  # of a body that does not tell its length
        self._head_before_chunks = b""
        self._head = bytearray()
        self._body_left = 0
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        # Nothing is what aiohttp gives itself when reading goes on: it then takes what it had put
        # aside. Where that is the end of a body, no other bytes will ever come.
        if self._upgraded or not data:  # a console has bounds of its own
            super().data_received(data)
            return
        while data and not self._is_refused:
            if self._body_left:
                body, data = data[: self._body_left], data[self._body_left :]
                self._body_left -= len(body)
                super().data_received(body)
            elif self._chunks:
                data = self._take_chunks(self._chunks, data)
            else:
                data = self._take_head(data)

    def _take_head(self, data: bytes) -> bytes:
        """Take the part of ``data`` that is of a head, and return the others."""
        room = LONGEST_HEAD - len(self._head)
        seen = max(0, len(self._head) - 3)
        self._head += data[:room]
        end = self._head.find(b"\r\n\r\n", seen)
        if end < 0:
            if len(self._head) >= LONGEST_HEAD:
                self._refuse()
            return data[room:]
        head, others = bytes(self._head[: end + 4]), bytes(self._head[end + 4 :]) + data[room:]
        self._head.clear()
        told = _LENGTH.search(head)
        length = int(told[1]) if told else 0
        if self._is_too_much(head, length, tells_length=told is not None):
            self._refuse()
            return others
        self._encourage(head)
        if is_in_chunks(head):
            self._chunks, self._head_before_chunks = Chunks(self._most_in_chunks), head
            return others
        self._body_left = length
        super().data_received(head)
        if self._upgraded and others:
            super().data_received(others)
            return b""
        return others

    def _is_too_much(self, head: bytes, length: int, *, tells_length: bool) -> bool:
        """Tell whether a request is refused for its frame: its body is too long, or unbounded."""
        if len(self._messages) >= MOST_AHEAD:
            return True
        if is_coded(head):
            return tells_length or not self._most_in_chunks or not is_in_chunks(head)
        return self.most_body is not None and length > self.most_body

    def _take_chunks(self, chunks: Chunks, data: bytes) -> bytes:
        """Take the part of ``data`` that is of a body in chunks, and return the others."""
        try:
            body, others = chunks.feed(data)
        except ValueError:
            self._refuse()
            return b""
        if body is not None:
            self._chunks = None
            super().data_received(with_length(self._head_before_chunks, len(body)) + body)
        return others

    def _encourage(self, head: bytes) -> None:
        """Say that the body may come, to a client that waits a second or so for such a word."""
        is_answering = self._current_request is not None or self._messages
        if _EXPECTS.search(head) and not is_answering and self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer what is no request, or what could not be answered."""
        super().handle_error(request, status, exc, message)  # which logs it
        told = "An internal error." if status >= 500 else "This is no request that can be read."
        text, content_type = self._explain(status, told)
        response = Response(status=status, body=text, headers={"Content-Type": content_type})
        response.force_close()
        return response

    def _refuse(self) -> None:
        """Answer that the request is bad, and hang up; what comes now is not looked at."""
        self._is_refused = True
        if (transport := self.transport) is None:  # we have hung up already
            return
        # Whoever closes a TLS connection decrypts all that is still to come, megabytes perhaps.
        # What is not read stays in the kernel, and goes with the connection.
        transport.pause_reading()
        text, content_type = self._explain(400, WHY)
        transport.write(_REFUSED % (content_type.encode(), len(text), text))
        self._loop.call_later(ANSWER_S, transport.abort)


class _OneLine(logging.LoggerAdapter[logging.Logger]):
    """What a caller did wrong is worth a line; what we did wrong, a traceback."""

    def __init__(self) -> None:
        super().__init__(log, {})

    def exception(self, msg: object, *args: object, exc_info: Any = True, **named: Any) -> None:
        if isinstance(exc_info, HttpProcessingError):
            why = exc_info.message.partition("\n")[0][:200]
            self.info(f"{msg}: %s", *args, why, **named)
        else:
            super().exception(msg, *args, exc_info=exc_info, **named)
