"""The nodes that were chosen for an instance."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from common.errors import Conflict, InvalidRequest, NoCapacity, NodeFailure, NotFound
from common.messages import Order
from common.model.node import Node, NodeRef
from common.model.template import DiskTemplate
from coordinator.operations.base import StaleChoice
from coordinator.operations.cluster_view import Cluster
from coordinator.state.config import Config


class Place(Order):
    """Where an instance is going to be.

    Attributes:
        node: where it runs.
        others: that hold its disks, too: the secondary node of a mirrored one.
        allocator: that has chosen, and is asked again when a node will not do any more. Empty
            where somebody has named the nodes, or chosen them together with others.
    """

    node: NodeRef
    others: tuple[NodeRef, ...] = ()
    allocator: str = ""

    @property
    def nodes(self) -> tuple[NodeRef, ...]:
        """All of them, the one where it runs first."""
        return self.node, *self.others

    def find(self, config: Config) -> Node:
        """Return the node where it runs as it is now.

        Raises:
            NotFound: it has left the cluster.
        """
        return _find(config, self.node)

    def find_all(self, config: Config) -> tuple[Node, ...]:
        """Return all nodes as they are now.

        Raises:
            NotFound: one has left the cluster.
        """
        return tuple(_find(config, ref) for ref in self.nodes)


def place_of(nodes: Sequence[NodeRef], allocator: str = "") -> Place:
    """Return the place on these nodes, the primary one first."""
    return Place(node=nodes[0], others=tuple(nodes[1:]), allocator=allocator)


def named_place(config: Config, template: DiskTemplate, names: Sequence[str]) -> Place:
    """Return the place on nodes that somebody has named, the primary one first.

    Raises:
        NotFound: there is no such node.
        InvalidRequest: they are not as many as the template needs, or one comes twice.
    """
    nodes = [config.node(name).ref for name in names]
    if len(nodes) != template.traits.nodes:
        are = "one node" if template.traits.nodes == 1 else "two nodes, as in -n PRIMARY:SECONDARY"
        raise InvalidRequest(
            f"An instance with the disk template {template} has {are}; given: "
            f"{', '.join(map(str, nodes))}."
        )
    if len({node.uuid for node in nodes}) < len(nodes):
        raise InvalidRequest(f"The secondary node has to be another one than {nodes[0]}.")
    return place_of(nodes)


def _find(config: Config, ref: NodeRef) -> Node:
    node = config.nodes.get(ref.uuid)
    if node is None:
        raise NotFound(f"Node {ref} is in the cluster no more.", node=ref.name)
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
