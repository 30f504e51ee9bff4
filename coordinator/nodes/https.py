"""Calls over HTTPS with mutual TLS, on connections that are kept open."""

import ssl
from typing import Self

import aiohttp

from common.model.node import Node
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope

# Less than the 75 s after which aiohttp's server ends an idle connection: a call must not be
# sent into one that is just being closed.
KEPT_S = 30.0


class HttpsDial:
    """Opens connections as needed; one of them carries one call at a time."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Use ``context``, which has this node's certificate and the cluster's authority."""
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            ssl=self._context, limit=0, keepalive_timeout=KEPT_S, use_dns_cache=False
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(),  # the caller watches the time
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> bytes:
        """Carry one call to ``node``; see ``Dial``.

        The node is dialled by address, so that no name service is needed, and has to show the
        certificate of its name.
        """
        if self._session is None:
            raise RuntimeError("the connections are used outside of their “async with”")
        host = f"[{node.primary_ip}]" if ":" in node.primary_ip else node.primary_ip
        headers = {"Content-Type": "application/json", **envelope.headers()}
        try:
            async with self._session.put(
                f"https://{host}:{node.port}{call.path}",
                data=body,
                headers=headers,
                server_hostname=node.name,
                allow_redirects=False,
            ) as response:
                return await response.read()
        except aiohttp.ClientConnectorCertificateError as error:
            raise error.certificate_error from error
        except aiohttp.ClientConnectorError as error:
            raise error.os_error from error
        except OSError:
            raise
        except aiohttp.ClientError as error:
            raise ConnectionResetError(str(error) or type(error).__name__) from error
