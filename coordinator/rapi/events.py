"""What changes, as a stream of server-sent events, so that nobody has to ask again and again.

All who listen read one ring at their own pace. Whoever is too slow for it, or comes back too late,
is told to read the lists anew: nothing is kept for anybody.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from common import web
from common.messages import to_json
from coordinator.rapi.call import BAD, Call
from coordinator.rapi.copy import Row
from coordinator.rapi.failures import refused
from coordinator.rapi.fields import CLUSTER, FIELDS
from coordinator.rapi.sending import PATIENCE_S

MEDIA = "text/event-stream"
KEPT = 10_000  # events
AT_ONCE = 100  # before others get their turn
SIGN_OF_LIFE_S = 15.0  # for those in between, who close what is silent
RESET = "reset"


class Event(NamedTuple):
    number: int
    kind: str
    text: bytes  # JSON


class Events:
    """The last events of this process."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)  # numbers of another one mean nothing
        self._ring: deque[Event] = deque(maxlen=KEPT)
        self._last = 0
        self._more = asyncio.Event()

    def changed(self, kind: str, key: Any, row: Row | None) -> None:
        """Note that an object has changed, or is gone."""
        told: dict[str, Any] = {"kind": kind, "id": key, "is_gone": row is None}
        if row is not None:
            path = "/2/info" if kind == CLUSTER else f"/2/{kind}s/{row.name}"
            told |= {"name": row.name, "uri": path, "object": msgspec.Raw(row.brief)}
        self._note(kind, told)

    def reset(self) -> None:
        """Note that some may have been missed."""
        self._note(RESET, {"kind": RESET})

    def id_of(self, number: int) -> str:
        return f"{self._run}-{number}"

    def number_of(self, text: str | None) -> int | None:
        """Return the number of the last event that a client has; None if that is not known."""
        if text is None:
            return self._last
        run, _, number = text.partition("-")
        return int(number) if run == self._run and number.isdecimal() else None

    def after(self, number: int) -> list[Event] | None:
        """Return what came after an event; None if some of it is not kept any more."""
        oldest = self._last - len(self._ring)
        if not oldest <= number <= self._last:
            return None
        new = self._last - number
        return [self._ring[index] for index in range(len(self._ring) - new, len(self._ring))]

    @property
    def last(self) -> int:
        return self._last

    async def more(self) -> None:
        """Return when there is another one."""
        await self._more.wait()

    def _note(self, kind: str, told: Any) -> None:
        self._last += 1
        self._ring.append(Event(self._last, kind, to_json(told)))
        self._more.set()
        self._more = asyncio.Event()


async def stream(request: web.BaseRequest, call: Call, events: Events) -> web.StreamResponse:
    """Send events until the client has gone, or does not take them.

    Raises:
        Refusal: there are no such kinds.
        ConnectionError: the client is gone.
    """
    kinds = _kinds(call)
    response = web.StreamResponse(headers={"Cache-Control": "no-store"})
    response.content_type = MEDIA
    await response.prepare(request)
    number = events.number_of(request.headers.get("Last-Event-ID"))
    text = b"retry: 1000\n\n"
    with suppress(TimeoutError):
        while True:
            new = None if number is None else events.after(number)
            if new is None:
                number = events.last
                text += _shown(events, Event(number, RESET, b'{"kind":"reset"}'))
                new = []
            for part in _parts(new):
                text += b"".join(_shown(events, each) for each in part if each.kind in kinds)
                number = part[-1].number
                text = await _sent(response, text)
            text = await _sent(response, text)
            if events.last == number:
                try:
                    async with asyncio.timeout(SIGN_OF_LIFE_S):
                        await events.more()
                except TimeoutError:
                    text = b":\n\n"
    if request.transport:
        request.transport.abort()
    return response


async def _sent(response: web.StreamResponse, text: bytes) -> bytes:
    """Send and return what is left to be sent: nothing."""
    if text:
        async with asyncio.timeout(PATIENCE_S):
            await response.write(text)
    return b""


def _parts(events: list[Event]) -> Iterator[list[Event]]:
    return (events[begin : begin + AT_ONCE] for begin in range(0, len(events), AT_ONCE))


def _shown(events: Events, event: Event) -> bytes:
    head = f"id: {events.id_of(event.number)}\nevent: {event.kind}\ndata: ".encode()
    return head + event.text + b"\n\n"


def _kinds(call: Call) -> Collection[str]:
    text = call.text("kinds")
    if text is None:
        return {*FIELDS, RESET}
    kinds = {kind.strip() for kind in text.split(",")}
    if strange := sorted(kinds - FIELDS.keys()):
        raise refused(BAD, f"There are no events of “{strange[0]}”; there are {', '.join(FIELDS)}.")
    return kinds | {RESET}
