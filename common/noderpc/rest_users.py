"""Whom a node's ``gantry-rapi`` lets in, besides those in the operator's own file there."""

from abc import abstractmethod

from common.rpc.declare import NodeService, rpc


class RestUsers(NodeService, prefix="rest-users"):
    """The cluster's users of the REST interface, wherever it may run."""

    @rpc(timeout=15, safe_to_repeat=True, largest_question=4 << 20)
    @abstractmethod
    async def publish(self, *, users: str) -> None:
        """Let these in, and no others any more; ``common.rest_users`` has the form.

        Raises:
            NodeFailure: the disk is full or broken; the older ones stay.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def publish_certificate(self, *, pem: str) -> None:
        """Show clients this one, instead of the node's own; the key is in the text, too.

        Raises:
            NodeFailure: the disk is full or broken; the older one stays.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def withdraw(self) -> None:
        """Let none of them in, and show clients the node's own certificate.

        Raises:
            NodeFailure: the disk is read-only or broken.
        """
