"""Calls over HTTPS with mutual TLS, on connections that are kept open."""

import asyncio
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

from common.model.node import Node
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope
from common.rpc.server import Reply
from coordinator.nodes.connection import Connection

# Less than the 60 s after which noded ends an idle connection: a call must not be sent into one
# that is just being closed.
KEPT_S = 30.0

_Place = tuple[str, str, int, str]  # name, address, port, key


class HttpsDial:
    """Opens connections as needed; one of them carries one call at a time."""

    def __init__(self, context: ssl.SSLContext, key: Path | None = None) -> None:
        """Use ``context``, which has this node's certificate and the cluster's authority.

        ``key`` is the file with this node's key, for who is going to show another certificate.
        """
        self._context, self._key = context, key
        self._idle: dict[_Place, list[Connection]] = {}  # the last used one last

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # the loop closes them in its next turn

    def trust(self, authorities: str) -> None:
        """Take certificates, too, that these have signed; PEM, one after the other."""
        self._context.load_verify_locations(cadata=authorities)

    def show(self, certificate: str) -> None:
        """Show another certificate for the same key on connections from now on; PEM."""
        with NamedTemporaryFile("w", encoding="ascii") as file:
            file.write(certificate)
            file.flush()
            self._context.load_cert_chain(file.name, self._key)

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        """Carry one call to ``node``; see ``Dial``.

        The node is dialled by address, so that no name service is needed, and has to show the
        certificate of its name, and of its key where that is known.
        """
        place = node.name, node.primary_ip, node.port, node.key
        connection = self._find(place) or await self._open(node)
        try:
            answer = await connection.put(call, node.name, envelope.headers(), body)
        except BaseException:
            connection.abort()
            raise
        self._idle.setdefault(place, []).append(connection)
        return answer

    async def _open(self, node: Node) -> Connection:
        opened = await Connection.open(node.primary_ip, node.port, self._context, node.name)
        if not node.is_known_by(opened.key):
            opened.abort()
            raise ssl.SSLCertVerificationError("its key is another one than it is known by")
        return opened

    def _find(self, place: _Place) -> Connection | None:
        """Take an idle connection, the last used one, if there is any to be used."""
        idle = self._idle.get(place, [])
        oldest_s = asyncio.get_running_loop().time() - KEPT_S
        while idle:
            connection = idle.pop()
            if connection.is_usable and connection.used_s > oldest_s:
                return connection
            connection.abort()
        return None
