"""How objects that have tags are named in orders, and what is locked for them."""

from typing import Annotated, assert_never

from coordinator.locks.names import Wanted
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.state.config import Config
from coordinator.state.tagged import Tagged, find_tagged

KindArgument = Annotated[Tagged, argument("kind of the object")]
NameArgument = Annotated[str | None, argument("name of the object; none for the cluster")]


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
