"""The cluster's certificate authority, from the secrets of its state."""

from collections.abc import Callable

from common.errors import Conflict
from common.model.node import Node
from common.names import NodeName
from coordinator.state.state import State

AUTHORITY_KEY, AUTHORITY_CERTIFICATE = "authority-key", "authority-certificate"


class StateAuthority:
    """Implements ``coordinator.operations.cluster.Authority``."""

    def __init__(self, state: State, now: Callable[[], float]) -> None:
        self._state, self._now = state, now

    @property
    def pem(self) -> str:
        return self._secret(AUTHORITY_CERTIFICATE)

    def certificate(self, csr: str, node: Node, *, also: NodeName | None = None) -> str:
        # Late, as it is large, and most masters never issue a certificate.
        from common.tls.authority import issue
        from common.tls.keys import KeyPair

        addresses = {node.primary_ip, node.secondary_ip or node.primary_ip}
        return issue(
            KeyPair(self._secret(AUTHORITY_KEY), self.pem),
            csr,
            node=node.name,
            addresses=sorted(addresses),
            now=self._now(),
            also=also,
        )

    def _secret(self, what: str) -> str:
        if what not in self._state.secrets:
            raise Conflict(f"The state of this cluster lacks the secret “{what}”.")
        return self._state.secrets[what].value
