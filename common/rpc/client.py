"""Turn a declared service into an object that calls a remote node."""

from typing import Any, Protocol, TypeVar

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
        reply = await self.transport.send(call, body)
        return open_answer(
            reply, call.returns, what=f"the answer of {self.transport.peer} to {call.name}"
        )

    return method
