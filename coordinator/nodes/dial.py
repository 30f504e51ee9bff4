"""How bytes get to a node."""

from typing import Protocol

from common.model.node import Node
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope
from common.rpc.server import Reply


class Dial(Protocol):
    """HTTPS in production, a function call in simulations."""

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        """Carry one call to ``node`` and return its answer.

        The caller watches the time; being cancelled ends the attempt.

        Raises:
            ConnectionRefusedError: nobody listens; the call was not carried out.
            ssl.SSLCertVerificationError: the node does not prove who it is; likewise.
            OSError: the connection broke; whether the call was carried out is unknown.
        """
