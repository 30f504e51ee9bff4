"""The objects that have tags: how each is named, found and locked."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, assert_never

from common.errors import InvalidRequest
from common.model.entity import Entity
from coordinator.locks.names import Wanted
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class Tagged(StrEnum):
    """Kinds of objects with tags; names are Ganeti's."""

    CLUSTER = "cluster"
    NODE_GROUP = "nodegroup"
    NODE = "node"
    INSTANCE = "instance"
    NETWORK = "network"


KindArgument = Annotated[Tagged, argument("kind of the object")]
NameArgument = Annotated[str | None, argument("name of the object; none for the cluster")]


def find_tagged(config: Config, kind: Tagged, name: str | None) -> Entity:
    """Return an object that has tags.

    Raises:
        InvalidRequest: it is not named.
        NotFound: there is no such object.
    """
    if kind is Tagged.CLUSTER:
        return config.cluster
    if not name:
        raise InvalidRequest(f"Say which {kind} it is.")
    match kind:
        case Tagged.NODE_GROUP:
            return config.group(name)
        case Tagged.NODE:
            return config.node(name)
        case Tagged.INSTANCE:
            return config.instance(name)
        case Tagged.NETWORK:
            return config.get(NETWORK, name)
        case never:
            assert_never(never)


def locks_of_tagged(config: Config, kind: Tagged, name: str | None) -> Wanted:
    """Return what has to be locked while the tags of an object are changed."""
    item = find_tagged(config, kind, name)
    match kind:
        case Tagged.CLUSTER:
            return wanted(parameters=True)
        case Tagged.NODE_GROUP:
            return wanted(groups_exclusive=[item.uuid])
        case Tagged.NODE:
            return wanted(nodes_exclusive=[item.uuid])
        case Tagged.INSTANCE:
            return wanted(instance=config.instance(item.uuid).name)
        case Tagged.NETWORK:
            return wanted(networks_exclusive=[item.uuid])
        case never:
            assert_never(never)


def all_tagged(config: Config) -> Iterator[tuple[str, Entity]]:
    """Yield every object that has tags, with its path as Ganeti writes it."""
    yield "/cluster", config.cluster
    for instance in config.sorted_instances():
        yield f"/instances/{instance.name}", instance
    for node in config.sorted_nodes():
        yield f"/nodes/{node.name}", node
    for group in config.sorted_groups():
        yield f"/nodegroup/{group.name}", group
    for network in config.sorted(NETWORK):
        yield f"/networks/{network.name}", network
