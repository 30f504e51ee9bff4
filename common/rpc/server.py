"""Find the handler for an incoming call, run it, and put the outcome in an answer."""

import logging
from typing import Any, NamedTuple

from common.errors import Bug, GntError, InvalidRequest, NotFound
from common.messages import from_json
from common.rpc.clock import Reading
from common.rpc.declare import CallSpec, NodeService
from common.rpc.envelope import answer, failure

log = logging.getLogger(__name__)


class Reply(NamedTuple):
    """An HTTP status, a JSON body, and what the node's clock showed when it answered."""

    status: int
    body: bytes
    shown: Reading | None = None


class Dispatcher:
    """Routes ``("instances", "start")`` to the object that implements it."""

    def __init__(self, *services: NodeService) -> None:
        self._services = {service.prefix: service for service in services}

    def find(self, service: str, method: str) -> CallSpec:
        """Return what was agreed about a call.

        Raises:
            NotFound: this node knows no such call.
        """
        known = self._services.get(service)
        if known is None or method not in known.calls:
            raise NotFound(
                f"This node knows no call “{service}.{method}”; is it of an older version?"
            )
        return known.calls[method]

    async def run(self, call: CallSpec, body: bytes) -> Reply:
        """Carry out a call. Never raises, but for cancellation."""
        try:
            arguments = _arguments(call, body)
            handler = getattr(self._services[call.service], call.method)
            fields = call.arguments.__struct_fields__
            result = await handler(**{name: getattr(arguments, name) for name in fields})
            return Reply(200, answer(result))
        except Exception as error:  # noqa: BLE001 -- whatever it is, the caller has to hear of it
            return refusal(error)


def _arguments(call: CallSpec, body: bytes) -> Any:
    try:
        return from_json(body or b"{}", call.arguments, what=f"the call {call.name}")
    except InvalidRequest as error:
        raise InvalidRequest(
            f"{error.message} Does its caller run another version of Gantry?"
        ) from error


def refusal(error: Exception) -> Reply:
    """Turn an exception into an answer; what is unexpected is logged here, once."""
    if not isinstance(error, GntError):
        log.error("a call failed unexpectedly", exc_info=error)
        error = Bug(f"An internal error: {type(error).__name__}: {error}.")
    return Reply(error.http_status, failure(error))
