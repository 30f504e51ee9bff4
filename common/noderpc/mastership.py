"""Who is master, as this node sees it: the ballot and the grant."""

from abc import abstractmethod

from common.messages import Report
from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName
from common.rpc.declare import NodeService, rpc


class Ballot(Report):
    """A node's answer to whoever wants to start as master.

    ``stamp`` is of this node's replica, ``newest_job`` the highest job id in it; both are
    None on a node that holds no replica.
    """

    master: NodeName | None  # whom the newest grant went to
    epoch: Epoch  # the highest ever granted
    stamp: Stamp | None = None
    newest_job: JobId | None = None


class Mastership(NodeService, prefix="mastership"):
    """Confirms a master; never chooses one."""

    @rpc(timeout=5, safe_to_repeat=True, fenced=False, open_to_nodes=True)
    @abstractmethod
    async def vote(self) -> Ballot:
        """Say who is master, and how new this node's state is."""

    @rpc(timeout=10, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def grant(self, *, epoch: Epoch, master: NodeName, only_if_named: bool = False) -> None:
        """Promise to obey no epoch below ``epoch``, durably; once for each epoch.

        Returns after the calls of older epochs in flight have ended. Granting the same
        epoch to the same master again changes nothing.

        Args:
            epoch: one that no node has granted yet.
            master: who asks.
            only_if_named: refuse if this node names another master, or none.

        Raises:
            Deposed: this epoch or a later one went to another node, or another is named.
        """
