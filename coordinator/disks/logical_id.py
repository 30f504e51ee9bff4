"""Where the bytes of a disk are, in the words of Ganeti's ``logical_id``."""

from typing import Any

from common.model.disk import (
    Backing,
    BlockBacking,
    DrbdBacking,
    DumpBacking,
    ExtBacking,
    FileBacking,
    LvmBacking,
    RbdBacking,
    StreamBacking,
)
from common.names import NodeId


def logical_id(backing: Backing, nodes: tuple[NodeId, ...]) -> list[Any]:
    """Return what Ganeti writes of a disk that ``nodes`` have; the secret is left out."""
    match backing:
        case DrbdBacking():
            minors = [backing.minors[node] for node in nodes]
            return [*nodes, backing.port, *minors, None]
        case LvmBacking():
            return [backing.group, backing.name]
        case FileBacking():
            return ["loop", backing.path]
        case BlockBacking():
            return ["manual", backing.device]
        case RbdBacking():
            return ["rbd", backing.image]
        case ExtBacking():
            return [backing.provider, backing.name]
        case DumpBacking():
            return [backing.export, backing.name]
        case StreamBacking():
            return [backing.run]


def device_path(backing: Backing, node: NodeId) -> str:
    """Return under which name a node has a disk; of external storage what its provider calls it."""
    match backing:
        case DrbdBacking():
            return f"/dev/drbd{backing.minors[node]}"
        case LvmBacking():
            return f"/dev/{backing.group}/{backing.name}"
        case FileBacking():
            return backing.path
        case BlockBacking():
            return backing.device
        case RbdBacking():
            return f"/dev/rbd/{backing.pool}/{backing.image}"
        case ExtBacking() | DumpBacking():
            return backing.name
        case StreamBacking():
            return backing.where
