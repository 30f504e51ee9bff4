"""The cluster's certificate authority, from the secrets of its state."""

from collections.abc import Callable
from typing import Protocol

from common.errors import Conflict
from common.model.node import Node
from common.model.secret import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    NEXT_CERTIFICATE,
    NEXT_KEY,
)
from common.names import NodeName
from coordinator.state.state import State


class OwnLine(Protocol):
    """How the coordinator itself connects to nodes."""

    def trust(self, authorities: str) -> None:
        """Take certificates, too, that these have signed; PEM, one after the other."""

    def show(self, certificate: str) -> None:
        """Show another certificate for this node's key on new connections; PEM."""


class StateAuthority:
    """Implements ``coordinator.operations.cluster_view.Authority``.

    The coordinator trusts whom it has nodes trust before they do, and shows the certificate that
    it has issued for its own node: its files it reads when it starts, and not again.
    """

    def __init__(
        self,
        state: State,
        now: Callable[[], float],
        *,
        me: NodeName | None = None,
        line: OwnLine | None = None,
    ) -> None:
        self._state, self._now, self._me, self._line = state, now, me, line

    @property
    def pem(self) -> str:
        return self._secret(AUTHORITY_CERTIFICATE)

    @property
    def trusted(self) -> str:
        following = self._state.secrets.get(NEXT_CERTIFICATE)
        authorities = self.pem + (following.value if following else "")
        if self._line:
            self._line.trust(authorities)
        return authorities

    def certificate(
        self, csr: str, node: Node, *, also: NodeName | None = None, by_next: bool = False
    ) -> str:
        # Late, as it is large, and most masters never issue a certificate.
        from common.tls.authority import issue
        from common.tls.keys import KeyPair

        key, certificate = (
            (NEXT_KEY, NEXT_CERTIFICATE) if by_next else (AUTHORITY_KEY, AUTHORITY_CERTIFICATE)
        )
        addresses = {node.primary_ip, node.secondary_ip or node.primary_ip}
        issued = issue(
            KeyPair(self._secret(key), self._secret(certificate)),
            csr,
            node=node.name,
            addresses=sorted(addresses),
            now=self._now(),
            also=also,
        )
        if self._line and node.name == self._me:
            self._line.show(issued)
        return issued

    def _secret(self, what: str) -> str:
        if what not in self._state.secrets:
            raise Conflict(f"The state of this cluster lacks the secret “{what}”.")
        return self._state.secrets[what].value
