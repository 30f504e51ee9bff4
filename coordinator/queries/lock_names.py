"""Locks in the words of operators: many are taken by UUID, since names may change."""

from coordinator.locks.names import ALL, Level, LockName
from coordinator.state.config import Config
from coordinator.state.kinds import KINDS

_KINDS = {
    Level.CLUSTER: "cluster",
    Level.INSTANCE: "instance",
    Level.GROUP: "group",
    Level.NODE: "node",
    Level.NODE_RES: "room on node",
    Level.NETWORK: "network",
}
_OWNERS = _KINDS | {Level.NODE_RES: "node"}


def named(lock: LockName, config: Config) -> LockName:
    """Return the lock with the name of its object instead of the UUID, if there is one."""
    kind = KINDS.by_name.get(_OWNERS[lock.level])
    if kind is None or not kind.named:
        return lock
    found = config.find(kind, lock.name)
    return lock if found is None else LockName(lock.level, found.name)


def in_words(lock: LockName, config: Config) -> str:
    """Name what a lock is on: ``instance web1``, ``all nodes``, ``the whole cluster``."""
    if lock.level is Level.CLUSTER:
        return "the whole cluster"
    if lock.name == ALL:
        return f"every {_KINDS[lock.level]}"
    return f"{_KINDS[lock.level]} {named(lock, config).name}"
