"""Whose orders a node takes: the list that the master publishes."""

from abc import abstractmethod

from common.messages import Order
from common.names import Epoch, KeyId, NodeName, Serial
from common.rpc.declare import NodeService, rpc


class Roster(Order, omit_defaults=True):
    """The master candidates, each with the key of its certificate, and who is out.

    ``epoch`` and ``serial`` are of the state that the list was made from, and order lists by
    age. Where a key is empty, which is so for nodes that joined under an older version, any
    certificate of that name counts. ``following`` are keys that count as well, of candidates that
    are about to have another one. ``revoked`` are the keys of nodes that were removed, and former
    ones: their certificates are still signed by the cluster's authority, and open nothing any more.
    """

    epoch: Epoch = Epoch(0)
    serial: Serial = Serial(0)
    candidates: dict[NodeName, KeyId] = {}
    following: dict[NodeName, KeyId] = {}
    revoked: tuple[KeyId, ...] = ()

    @property
    def age(self) -> tuple[Epoch, Serial]:
        return self.epoch, self.serial


class Rosters(NodeService, prefix="roster"):
    """The roster of one node."""

    @rpc(timeout=5, safe_to_repeat=True)
    @abstractmethod
    async def publish(self, *, roster: Roster) -> None:
        """Obey the nodes of ``roster`` and nobody else, durably; from this answer on.

        A roster that is older than the present one changes nothing.

        Raises:
            InvalidRequest: it names nobody.
            NodeFailure: the disk is full or broken; the old roster stays in force.
        """

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def show(self) -> Roster:
        """Return the roster that is in force here."""
