"""Errors as clients of the REST interface get them: a status, and a JSON object with the same."""

from http import HTTPStatus
from typing import Any

from common.errors import Conflict, GntError, NoCapacity
from common.luxi.client import ConnectionLost, NoCoordinator
from common.luxi.failures import QueueDrained


class Refusal(GntError):
    """A request that goes no further; made by ``refused``."""

    code = "refused"

    @property
    def status(self) -> HTTPStatus:
        return HTTPStatus(self.detail.get("status", HTTPStatus.BAD_REQUEST))

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the answer."""
        return dict(self.detail.get("headers", {}))


def refused(status: HTTPStatus, message: str, **headers: str) -> Refusal:
    """Return a refusal; ``_`` in names of headers stands for a dash."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Refusal(message, status=status.value, headers=named)


class NotHere(Conflict):
    """The coordinator runs on another node, or nowhere."""

    code = "conflict.not-here"
    http_status = 503


_UNAVAILABLE = (QueueDrained, NoCapacity)
_NO_GATEWAY = (NoCoordinator, ConnectionLost)


def status_of(error: GntError) -> HTTPStatus:
    """Return what Ganeti answers in such a case, or the nearest there is."""
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, _UNAVAILABLE):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, _NO_GATEWAY):
        return HTTPStatus.BAD_GATEWAY
    return HTTPStatus(error.http_status)


def told(error: GntError) -> dict[str, Any]:
    """Return the body of an answer that says what is wrong."""
    status = status_of(error)
    return {"code": status.value, "message": status.phrase, "explain": error.message or None}
