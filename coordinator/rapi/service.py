"""The REST interface without sockets: a request comes in, an answer goes out."""

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

from common import web
from common.errors import Bug, GntError
from common.messages import to_json
from common.rest_users import REALM, User
from coordinator.rapi.call import BAD, Call, parse_query
from coordinator.rapi.conditions import check_acceptable, check_unchanged, is_known, sum_of
from coordinator.rapi.events import MEDIA, Events, stream
from coordinator.rapi.failures import Refusal, refused, status_of, told
from coordinator.rapi.limits import Limits
from coordinator.rapi.manual import HTML, Manual, page
from coordinator.rapi.reads import Sources, Told
from coordinator.rapi.rights import REASON, may
from coordinator.rapi.routes import DESCRIPTION, JSON, METRICS, Route, Router
from coordinator.rapi.sending import send
from coordinator.rapi.users import Access, Users

log = logging.getLogger(__name__)

# Answered wherever the master is.
_FREE = frozenset({"/", "/2", "/version", "/2/features", DESCRIPTION, METRICS})


class Service:
    """Answers requests.

    Args:
        sources: where answers come from.
        events: what has changed.
        users: who may do what.
        limits: how much each may ask.
        where: says where the coordinator is, when it is not here.
        note: is told of each answer, for the access log.
        is_closed: even what is open to all takes a user.
    """

    def __init__(
        self,
        sources: Sources,
        events: Events,
        users: Users,
        limits: Limits,
        where: Callable[[], GntError],
        note: Callable[[web.BaseRequest, str, int, int], None] = lambda *_: None,
        *,
        is_closed: bool = False,
    ) -> None:
        self._sources, self._users, self._limits = sources, users, limits
        self._events = events
        self._where, self._note, self._is_closed = where, note, is_closed
        self._router, self._manual = Router(), Manual()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; whatever goes wrong is an answer, too."""
        user = "-"
        headers: dict[str, str] = {}
        status, media = HTTPStatus.OK, JSON
        try:
            source = (request.remote or "").removeprefix("::ffff:")  # IPv4 on a socket for both
            self._limits.check(source)
            route, named = self._router.find(request.method, request.path)
            known = self._user(request, route, source)
            user = known.name if known else "-"
            call = Call(
                method=route.method,
                path=request.path,
                named=named,
                query=parse_query(request.query_string),
                body=await _body(request),
                user=known.name if known else "",
                source=source,
            )
            self._check_may(known, route, call)
            if route.path == "/" and HTML in request.headers.get("Accept", ""):
                body, headers = page()
                return await send(request, status, body, HTML, headers)
            check_acceptable(request.headers.get("Accept"), route.media)
            self._check_here(route)
            if route.media == MEDIA:
                return await self._stream(request, call)
            self._check_unchanged(request, route, call)
            body = await self._answer(route, call, headers)
            media = route.media
            if route.method == "GET":
                status, body = _unless_known(request, headers, body)
            elif route.opcode and "respond-async" in request.headers.get("Prefer", ""):
                status = HTTPStatus.ACCEPTED
        except GntError as error:
            status, body, media = status_of(error), to_json(told(error)), JSON
            headers = error.headers if isinstance(error, Refusal) else {}
        except ConnectionError:  # the client has gone
            raise
        except Exception as error:
            log.exception("the request %s %s failed unexpectedly", request.method, request.path)
            bug = Bug(f"An internal error: {type(error).__name__}.")
            status, body = HTTPStatus.INTERNAL_SERVER_ERROR, to_json(told(bug))
        try:
            return await send(request, status, body, media, headers)
        finally:
            self._note(request, user, status.value, len(body))

    async def _answer(self, route: Route, call: Call, headers: dict[str, str]) -> bytes:
        if route.path not in _FREE and route.read is not None and route.access is Access.OPEN:
            headers["Age"] = str(int(self._sources.copy.age_s))
        if route.opcode and not call.user:
            self._limits.check_job(call.source)
        if route.is_submission:
            number = await self._submit(route, call)
            headers["Location"] = f"/2/jobs/{number}"
            return msgspec.json.encode(number)
        if route.path == DESCRIPTION:
            text = await self._manual.description()
            headers["ETag"] = f'"{sum_of(text)}"'
            return text
        assert route.read is not None
        value = await route.read(call, self._sources)
        if isinstance(value, Told):
            headers["ETag"] = f'"{value.version}"'
            return value.text
        body = msgspec.json.encode(value)
        if route.access is Access.OPEN:
            headers["ETag"] = f'"{sum_of(body)}"'
        return body

    def _check_here(self, route: Route) -> None:
        """Refuse what cannot be answered while the coordinator is not here."""
        if route.path not in _FREE and not self._sources.copy.is_whole:
            raise self._where()

    async def _stream(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        self._note(request, call.user, HTTPStatus.OK, 0)
        return await stream(request, call, self._events)

    def _check_unchanged(self, request: web.BaseRequest, route: Route, call: Call) -> None:
        condition = request.headers.get("If-Match")
        if condition is not None and route.method != "GET" and route.kind:
            row = self._sources.copy.tables[route.kind].find(next(iter(call.named.values())))
            check_unchanged(condition, row.serial if row else None)

    async def _submit(self, route: Route, call: Call) -> int:
        """Submit a job and return its number."""
        reason = _reason(route, call)
        operations = [each | reason for each in route.takes.operations(route.opcode, call)]
        return int(await self._sources.luxi.call("SubmitJob", operations))

    def _user(self, request: web.BaseRequest, route: Route, source: str) -> User | None:
        """Return who asks; None where that is not asked and not told.

        Raises:
            Refusal: the user is none.
        """
        header = request.headers.get("Authorization")
        if header is not None:
            user = self._users.log_in(header)
        else:
            transport = request.transport
            shown = transport.get_extra_info("peercert") if transport else None
            user = self._users.certified(shown)
        if user is not None or (header is None and self._is_open(route)):
            return user
        if header is not None:
            self._limits.failed(source)
        raise refused(
            HTTPStatus.UNAUTHORIZED,
            "No permission -- see authorization schemes",
            WWW_Authenticate=f'Basic realm="{REALM}"',
        )

    def _check_may(self, user: User | None, route: Route, call: Call) -> None:
        if user is None:
            return
        copy = self._sources.copy
        if not may(user, route, call, copy, is_closed=not self._is_open(route)):
            raise refused(HTTPStatus.FORBIDDEN, f"User {user.name} may not do this.")

    def _is_open(self, route: Route) -> bool:
        return route.access is Access.OPEN and not self._is_closed


async def _body(request: web.BaseRequest) -> Any:
    """Return the JSON value that came with a request, or None."""
    text = await request.read()
    if not text:
        return None
    if request.content_type.lower() != JSON:
        raise refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body has to be {JSON}.")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused(BAD, "Unable to parse JSON data") from error


def _unless_known(
    request: web.BaseRequest, headers: dict[str, str], body: bytes
) -> tuple[HTTPStatus, bytes]:
    """Leave out what the client has already."""
    if is_known(request.headers.get("If-None-Match"), headers.get("ETag", "").strip('"')):
        return HTTPStatus.NOT_MODIFIED, b""
    return HTTPStatus.OK, body


def _reason(route: Route, call: Call) -> dict[str, Any]:
    """Return the trail that tells why and by whom a job was submitted."""
    now_ns = time.time_ns()
    trail: list[tuple[str, str, int]] = []
    if text := call.text("reason"):
        trail.append(("gnt:user", text, now_ns))
    trail.append((f"gnt:library:rlib2:{route.handler}", "", now_ns))
    trail.append((REASON, f"{call.user} from {call.source}", now_ns))
    return {"reason": trail}
