"""Calls to a node of no cluster, which is known by its certificate's fingerprint only."""

import asyncio
from dataclasses import dataclass

from common.errors import InvalidRequest, Unreachable
from common.model.node import Node
from common.names import CallId, Epoch
from common.rpc.client import Transport
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope
from common.tls.context import joining_client_context
from coordinator.nodes.connection import Connection


def stranger(node: Node, fingerprint: bytes) -> Transport:
    """Return a line to ``node`` that trusts only the certificate with this SHA-256."""
    return _Line(node, fingerprint)


@dataclass(frozen=True, slots=True)
class _Line:
    """One connection a call; there are only two in a node's life."""

    node: Node
    fingerprint: bytes

    @property
    def peer(self) -> str:
        return self.node.name

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        where = f"Node {self.node.name} ({self.node.primary_ip}, port {self.node.port})"
        envelope = Envelope(epoch=Epoch(0), call=CallId(call.name))
        try:
            async with asyncio.timeout(call.timeout):
                connection = await Connection.open(
                    self.node.primary_ip, self.node.port, joining_client_context(), self.node.name
                )
                try:
                    if connection.fingerprint != self.fingerprint:
                        raise InvalidRequest(
                            f"{where} shows another certificate than the join token names: the "
                            "token is of another node, or was used before, or somebody is in "
                            "between."
                        )
                    reply = await connection.put(call, self.node.name, envelope.headers(), body)
                    return reply.body
                finally:
                    connection.abort()
        except TimeoutError as error:
            raise Unreachable(
                f"{where} did not answer within {call.timeout:g} seconds; are name, address and "
                "port right?",
                node=self.node.name,
            ) from error
        except ConnectionRefusedError as error:
            raise Unreachable(
                f"{where} refuses connections; is gantry-noded running there?", node=self.node.name
            ) from error
        except OSError as error:
            raise Unreachable(
                f"{where} cannot be reached for joining: {error.strerror or error}.",
                node=self.node.name,
            ) from error
