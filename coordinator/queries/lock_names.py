"""Locks in the words of operators: many are taken by UUID, since names may change."""

from common.names import GroupId, NodeId
from coordinator.locks.names import ALL, Level, LockName
from coordinator.state.config import Config

_KINDS = {
    Level.CLUSTER: "cluster",
    Level.INSTANCE: "instance",
    Level.GROUP: "group",
    Level.NODE: "node",
    Level.NODE_RES: "room on node",
    Level.NETWORK: "network",
}


def named(lock: LockName, config: Config) -> LockName:
    """Return the lock with the name of its object instead of the UUID, if there is one."""
    match lock.level:
        case Level.NODE | Level.NODE_RES if node := config.nodes.get(NodeId(lock.name)):
            return LockName(lock.level, node.name)
        case Level.GROUP if group := config.groups.get(GroupId(lock.name)):
            return LockName(lock.level, group.name)
        case _:
            return lock


def in_words(lock: LockName, config: Config) -> str:
    """Name what a lock is on: ``instance web1``, ``all nodes``, ``the whole cluster``."""
    if lock.level is Level.CLUSTER:
        return "the whole cluster"
    if lock.name == ALL:
        return f"every {_KINDS[lock.level]}"
    return f"{_KINDS[lock.level]} {named(lock, config).name}"
