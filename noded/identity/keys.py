"""Making keys and certificate requests, in a child process.

``cryptography`` is 14 MiB, needed on the few days of a node's life when it joins or renews;
in noded itself they would be locked in memory for good.
"""

import sys
from typing import Protocol

from common.messages import Order, Report, from_json, to_json
from common.names import NodeName
from noded.system.execute import execute

# A machine that boots, or joins at once when it has booted, has much to do, and cannot do without.
# Less than systemd gives noded to start, and whoever asks for a request waits for the answer.
MOST_S = 60.0


class KeyPair(Report):
    """A private key and the certificate it signed itself, both PEM."""

    key: str
    certificate: str


class SigningRequest(Report):
    """A private key and the certificate request signed with it, both PEM."""

    key: str
    csr: str


class KeyMaker(Protocol):
    """Makes what a node needs to be known by."""

    async def temporary(self, now: float) -> KeyPair:
        """Make a key and a certificate for a node of no cluster; ``now`` in seconds since 1970."""

    async def request(self, node: NodeName, key: str | None) -> SigningRequest:
        """Ask for a certificate for ``node``, for ``key`` or a new one.

        Raises:
            InvalidRequest: the key is none.
        """


class Wish(Order):
    """What the child process is asked for: a request for ``node``, or without, a temporary pair."""

    now: float = 0.0
    node: NodeName | None = None
    key: str | None = None


class ChildKeyMaker(KeyMaker):
    """Starts a Python for each wish; takes a quarter of a second, or much longer on a busy node."""

    async def temporary(self, now: float) -> KeyPair:
        made = await self._ask(Wish(now=now))
        return from_json(made, KeyPair, what="the new key")

    async def request(self, node: NodeName, key: str | None) -> SigningRequest:
        made = await self._ask(Wish(node=node, key=key))
        return from_json(made, SigningRequest, what="the new certificate request")

    async def _ask(self, wish: Wish) -> bytes:
        # The key goes through pipes: command lines and files are for others to read.
        child = (sys.executable, "-m", "noded.identity.make_keys")
        return (await execute(*child, timeout_s=MOST_S, stdin=to_json(wish))).stdout


class OwnKeyMaker(KeyMaker):
    """Makes keys in this process: in the child, and in tests."""

    async def temporary(self, now: float) -> KeyPair:
        from common.tls.keys import make_temporary

        pair = make_temporary(now=now)
        return KeyPair(key=pair.key, certificate=pair.certificate)

    async def request(self, node: NodeName, key: str | None) -> SigningRequest:
        from common.tls.keys import make_key, make_request

        key = make_key() if key is None else key
        return SigningRequest(key=key, csr=make_request(key, node))
