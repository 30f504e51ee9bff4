"""Turn a declared service into an object that calls a remote node."""

import re
from typing import Any, Protocol, TypeVar

from common.errors import BadAnswer, GntError
from common.messages import to_json
from common.rpc.declare import CallSpec, NodeService
from common.rpc.envelope import open_answer

S = TypeVar("S", bound=NodeService)


class Transport(Protocol):
    """Carries one request to one node: TLS in production, a function call in tests."""

    @property
    def peer(self) -> str:
        """Who is called, for messages: "alpha"."""

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        """Return the body of the answer, be it result or error.

        Raises:
            Unreachable: no answer came; whether the call was carried out is unknown.
        """


def stub(service: type[S], transport: Transport) -> S:
    """Return a ``service`` whose every method is a call to the node behind ``transport``."""
    remote: S = _remote_class(service)(transport)  # type: ignore[call-arg]
    return remote


_classes: dict[type[NodeService], type[Any]] = {}


def _remote_class(service: type[S]) -> type[S]:
    if service not in _classes:
        body: dict[str, Any] = {name: _method(call) for name, call in service.calls.items()}
        body["__init__"] = lambda self, transport: setattr(self, "transport", transport)
        _classes[service] = type(f"Remote{service.__name__}", (service,), body)
    return _classes[service]


def _method(call: CallSpec) -> Any:
    async def method(self: Any, **arguments: Any) -> Any:
        body = to_json(call.arguments(**arguments))
        peer = self.transport.peer
        reply = await self.transport.send(call, body)
        try:
            answer = open_answer(reply, call.returns, what=f"the answer of {peer} to {call.name}")
        except GntError as error:
            message = _said_by(peer, error.message)
            raise GntError.from_code(error.code, message, error.detail) from error
        if what := call.one_for_each:
            told, asked = len(answer), len(arguments[what])
            if told != asked:
                raise BadAnswer(f"{peer} answered {call.name} for {told} of {asked} {what}.")
        return answer

    return method


def _said_by(peer: str, message: str) -> str:
    """Name who says something: to an operator, "this node" is where the command was typed."""
    named = message.replace("This node", f"Node {peer}").replace("this node", peer)
    found = re.search(rf"(?<![\w.-]){re.escape(peer)}(?![\w-])", named)
    return named if found else f"{peer}: {named}"
