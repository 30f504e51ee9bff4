"""Calls to a node of no cluster, which is known by its certificate's fingerprint only."""

import asyncio
from dataclasses import dataclass

import aiohttp

from common.errors import InvalidRequest, Unreachable
from common.model.node import Node
from common.rpc.client import Transport
from common.rpc.declare import CallSpec
from common.rpc.envelope import CALL, EPOCH, TIMEOUT


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
        host = f"[{self.node.primary_ip}]" if ":" in self.node.primary_ip else self.node.primary_ip
        where = f"{self.node.name} ({host} port {self.node.port})"
        headers = {
            "Content-Type": "application/json", EPOCH: "0", CALL: call.name,
            TIMEOUT: str(call.timeout),
        }  # fmt: skip
        try:
            async with (
                asyncio.timeout(call.timeout),
                aiohttp.ClientSession(trust_env=False) as session,
                session.put(
                    f"https://{host}:{self.node.port}{call.path}",
                    data=body, headers=headers, allow_redirects=False,
                    ssl=aiohttp.Fingerprint(self.fingerprint),
                ) as response,
            ):  # fmt: skip
                return await response.read()
        except aiohttp.ServerFingerprintMismatch as error:
            raise InvalidRequest(
                f"{where} shows another certificate than the join token names: the token is of "
                "another node, or outdated, or somebody is in between."
            ) from error
        except TimeoutError as error:
            raise Unreachable(f"{where} did not answer {call.name} in time.") from error
        except (OSError, aiohttp.ClientError) as error:
            raise Unreachable(f"{where} cannot be reached for joining: {error}.") from error
