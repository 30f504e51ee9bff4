"""The node that was chosen for an instance."""

from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import Conflict, NoCapacity, NodeFailure, NotFound
from common.messages import Order
from common.model.node import Node, NodeRef
from coordinator.operations.base import StaleChoice
from coordinator.operations.cluster_view import Cluster
from coordinator.state.config import Config


class Place(Order):
    """Where an instance is going to be.

    ``allocator`` has chosen the node, and is asked for another one when it will not do any more.
    It is empty where somebody has named the node, or chosen it together with others.
    """

    node: NodeRef
    allocator: str = ""

    def find(self, config: Config) -> Node:
        """Return the node as it is now.

        Raises:
            NotFound: it has left the cluster.
        """
        node = config.nodes.get(self.node.uuid)
        if node is None:
            raise NotFound(f"Node {self.node} is in the cluster no more.", node=self.node.name)
        return node


@contextmanager
def another_if_stale(cluster: Cluster, place: Place) -> Iterator[None]:
    """Have another node chosen where the one that an allocator chose will not do any more."""
    try:
        yield
    except (Conflict, NoCapacity, NodeFailure, NotFound) as error:
        if not place.allocator:
            raise
        cluster.log(f"{error.message} Another node is looked for.")
        raise StaleChoice from error
