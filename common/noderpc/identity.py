"""How a node gets, renews and loses its place in a cluster."""

from abc import abstractmethod

from common.messages import Order, Report
from common.names import ClusterId, ClusterName, KeyId, NodeId, NodeName
from common.noderpc.roster import Roster
from common.rpc.declare import NodeService, rpc

KEYS_S = 75  # for a slow machine to make its key; it gives up before


class Request(Report):
    """``csr`` is a PEM certificate request; the key never leaves the node."""

    csr: str


class Who(Report):
    """Who a member is. The UUID was told to it alone: only who took part in its joining knows."""

    node_uuid: NodeId
    key: KeyId
    certificate: str = ""  # PEM; a node of an older version does not tell
    authority: str = ""  # whose signatures it trusts, PEM; nor this


class Membership(Order):
    """All that a node has to know of its cluster to obey it."""

    cluster: ClusterName
    cluster_uuid: ClusterId
    node: NodeName
    node_uuid: NodeId
    authority: str  # PEM, the cluster's certificate authority
    certificate: str  # PEM, this node's
    roster: Roster
    ssconf: dict[str, str] = {}


class Join(NodeService, prefix="join"):
    """Served without a client certificate, by a node of no cluster only.

    ``proof`` is hex HMAC-SHA256 over the call's name and arguments under the secret of the
    node's join token; see common.tls.token.
    """

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def check(self, *, node: NodeName, proof: str) -> None:
        """Check that the node can join as ``node``; changes nothing.

        Raises:
            Conflict: the node is in a cluster already.
            InvalidRequest: the proof does not fit the token, or the name is none.
        """

    @rpc(timeout=KEYS_S, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def request(self, *, node: NodeName, proof: str) -> Request:
        """Make a key for ``node`` and ask for a certificate.

        Raises:
            Conflict: the node is in a cluster already.
            InvalidRequest: the proof does not fit the token.
        """

    @rpc(timeout=15, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def accept(self, *, membership: Membership, proof: str) -> None:
        """Take the certificate and be a node of the cluster from now on.

        The token is used up. The listener is replaced by one that asks for certificates
        shortly after the answer.
        """


class Identity(NodeService, prefix="identity"):
    """A joined node's certificate."""

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def who(self) -> Who:
        """Say who this node is."""

    @rpc(timeout=KEYS_S, safe_to_repeat=True)
    @abstractmethod
    async def request(self, *, instead_of: KeyId | None = None) -> Request:
        """Ask for a new certificate, for the key the node has, or for another one.

        Args:
            instead_of: the key that is to be replaced. A node that has it makes another one, the
                same for each repeat, which it has in use as soon as it is given a certificate for
                that; a node that has another one in use already asks for that.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def renew(self, *, certificate: str, authority: str = "") -> None:
        """Use a new certificate for all connections from now on.

        Args:
            certificate: PEM; for the key in use, or for the one that was asked to take its place.
            authority: whose signatures to trust from now on, PEM, one after the other; empty: as
                before. Who shows another one has to leave.

        Raises:
            InvalidRequest: it is for neither key of this node, or not of this cluster.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def rename(self, *, node: NodeName) -> None:
        """Go by another name from now on.

        Raises:
            InvalidRequest: the certificate in use is not good for it.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def leave(self) -> None:
        """Forget the cluster: replica, certificate, ssconf, grants; new token, new listener.

        Raises:
            Conflict: guests are still here.
        """
