"""What a node has for its ``gantry-confd``, which answers also when there is no master."""

from abc import abstractmethod

from common.rpc.declare import NodeService, rpc


class Confd(NodeService, prefix="confd"):
    """The files of one node that ``gantry-confd`` reads."""

    @rpc(timeout=15, safe_to_repeat=True, largest_question=64 << 20)
    @abstractmethod
    async def publish(self, *, key: str, snapshot: bytes) -> None:
        """Have the key of the cluster's questions and a newer snapshot of its configuration.

        Both as ``common.confd_snapshot`` says; the node does not look into them.

        Raises:
            NodeFailure: the disk is full or broken; the older ones stay.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def withdraw(self) -> None:
        """Have neither, so that nothing old is told here.

        Raises:
            NodeFailure: the disk is read-only or broken.
        """
