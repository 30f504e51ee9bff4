"""The objects that have tags, by Ganeti's words for their kinds."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from common.errors import InvalidRequest
from common.model.entity import Entity
from coordinator.state.config import Config
from coordinator.state.kinds import CLUSTER, GROUP, INSTANCE, NETWORK, NODE, Kind


class Tagged(StrEnum):
    """Kinds of objects with tags."""

    CLUSTER = "cluster"
    NODE_GROUP = "nodegroup"
    NODE = "node"
    INSTANCE = "instance"
    NETWORK = "network"


class _Row(NamedTuple):
    kind: Kind[Any, Any]
    path: str  # where Ganeti's search finds them


_ROWS = {  # in the order in which they are searched
    Tagged.CLUSTER: _Row(CLUSTER, "/cluster"),
    Tagged.INSTANCE: _Row(INSTANCE, "/instances"),
    Tagged.NODE: _Row(NODE, "/nodes"),
    Tagged.NODE_GROUP: _Row(GROUP, "/nodegroup"),
    Tagged.NETWORK: _Row(NETWORK, "/networks"),
}


def find_tagged(config: Config, kind: Tagged, name: str | None) -> Entity:
    """Return an object that has tags.

    Raises:
        InvalidRequest: it is not named.
        NotFound: there is no such object.
    """
    row = _ROWS[kind]
    if not row.kind.named:
        return config.cluster
    if not name:
        raise InvalidRequest(f"Say which {kind} it is.")
    found: Entity = config.get(row.kind, name)
    return found


def all_tagged(config: Config) -> Iterator[tuple[str, Entity]]:
    """Yield every object that has tags, with its path as Ganeti writes it."""
    for kind, path in _ROWS.values():
        if not kind.named:
            yield path, config.cluster
            continue
        for item in config.sorted(kind):
            yield f"{path}/{item.name}", item
