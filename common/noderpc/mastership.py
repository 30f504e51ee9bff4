"""Who is master, as this node sees it: the ballot and the grant."""

from abc import abstractmethod

from common.messages import Report
from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName
from common.rpc.declare import NodeService, rpc

WATCH_S = 30.0  # how long a node keeps silent when nothing happens
REACH = 2**32  # how far above all that a node knows an epoch can be; more is no counting


class Ballot(Report):
    """A node's answer to whoever wants to start as master.

    ``stamp`` is of this node's replica, ``newest_job`` the highest job id in it; both are
    None on a node that holds no replica.
    """

    master: NodeName | None  # whose orders were obeyed last
    epoch: Epoch  # the highest ever granted
    granted_to: NodeName | None = None  # whom that epoch went to, until its first order; else None
    stamp: Stamp | None = None
    newest_job: JobId | None = None

    @property
    def holder(self) -> NodeName | None:
        """Whom ``epoch`` was granted to."""
        return self.granted_to or self.master


class Mastership(NodeService, prefix="mastership"):
    """Confirms a master; never chooses one."""

    @rpc(timeout=5, safe_to_repeat=True, fenced=False, largest_question=1 << 10)
    @abstractmethod
    async def vote(self) -> Ballot:
        """Say who is master, and how new this node's state is."""

    # A grant that comes late would depose the master who won after its caller gave up.
    @rpc(timeout=10, safe_to_repeat=True, fenced=False, expires=True)
    @abstractmethod
    async def grant(self, *, epoch: Epoch, master: NodeName, only_if_named: bool = False) -> None:
        """Promise to obey no epoch below ``epoch``, durably; once for each epoch.

        Returns after the calls of older epochs in flight have ended. Granting the same
        epoch to the same master again changes nothing.

        Args:
            epoch: one that no node has granted yet.
            master: who asks.
            only_if_named: refuse unless this node obeyed ``master`` last, or granted it the
                newest epoch.

        Raises:
            Deposed: this epoch or a later one went to another node, or another is named.
            Conflict: the epoch is out of all proportion to what this node knows.
        """

    @rpc(timeout=WATCH_S + 10, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def watch(self, *, epoch: Epoch) -> Ballot:
        """Return as soon as a later epoch than ``epoch`` is granted here, or after a while.

        A master asks its own node, and so hears at once that another takes over.
        """
