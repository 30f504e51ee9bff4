"""Whose orders a node takes: the list that the master publishes."""

from abc import abstractmethod

from common.messages import Order, Report
from common.names import Count, Epoch, KeyId, NodeName, Serial, Word
from common.rpc.declare import NodeService, rpc


class Roster(Order, omit_defaults=True):
    """The master candidates, each with the key of its certificate, and who is out.

    ``epoch`` and ``serial`` are of the state that the list was made from, and order lists by
    age. Where a key is empty, which is so for nodes that joined under an older version, any
    certificate of that name counts. ``following`` are keys that count as well, of candidates that
    are about to have another one. ``revoked`` are the keys of nodes that were removed, and former
    ones, the latest last: their certificates are still signed by the cluster's authority, and open
    nothing any more.
    """

    epoch: Epoch = Epoch(0)
    serial: Serial = Serial(0)
    candidates: dict[NodeName, KeyId] = {}
    following: dict[NodeName, KeyId] = {}
    revoked: tuple[KeyId, ...] = ()

    @property
    def age(self) -> tuple[Epoch, Serial]:
        return self.epoch, self.serial


class Revocations(Order, omit_defaults=True):
    """A list of revoked keys, told by what it comes to and how it ends.

    It has ``count`` keys, of which ``latest`` are the last ones; whoever has those before them has
    all, which ``digest`` (``common.revoked_keys``) proves.
    """

    count: Count = 0
    digest: Word = ""
    latest: tuple[KeyId, ...] = ()


class HeldKeys(Report):
    """How many revoked keys somebody knows, and the digest of their list."""

    count: Count
    digest: Word


class HeldRoster(Report):
    """The roster that is in force on a node; of its revoked keys no more than which they are."""

    epoch: Epoch
    serial: Serial
    candidates: dict[NodeName, KeyId]
    following: dict[NodeName, KeyId]
    revoked: HeldKeys

    @property
    def age(self) -> tuple[Epoch, Serial]:
        return self.epoch, self.serial


class Rosters(NodeService, prefix="roster"):
    """The roster of one node."""

    @rpc(timeout=5, safe_to_repeat=True)
    @abstractmethod
    async def update(self, *, roster: Roster, revocations: Revocations) -> HeldRoster:
        """Obey the nodes of ``roster`` and nobody else, durably; from this answer on.

        A roster that is older than the present one changes nothing. ``revocations`` take the place
        of its revoked keys. If what there is and what is told do not make up that list, the keys
        that are known stay revoked, and the answer tells which they are: then more has to be told.

        Raises:
            InvalidRequest: it names nobody.
            NodeFailure: the disk is full or broken; what could not be written is not in force.
        """

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def held(self) -> HeldRoster:
        """Tell which roster is in force here."""

    @rpc(timeout=5, safe_to_repeat=True)
    @abstractmethod
    async def publish(self, *, roster: Roster) -> None:
        """Do as for ``update``, all keys told: for who has not heard of that, and for no other.

        Raises:
            InvalidRequest: it names nobody.
            NodeFailure: the disk is full or broken; the old roster stays in force.
        """

    @rpc(timeout=5, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def show(self) -> Roster:
        """Return the roster that is in force here, with all of its keys; as for ``publish``."""
