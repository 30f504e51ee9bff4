"""Which locks an operation takes, in the words of operations.

Every operation shares the cluster's lock, so that whatever has it exclusively (destroying
the cluster) is alone. Nodes and groups are locked by UUID: names may change.
"""

from collections.abc import Iterable

from coordinator.locks.names import BGL, PARAMETERS, Level, LockName, Mode, Wanted


def wanted(
    *,
    instance: str = "",
    new_name: str = "",
    disks: Iterable[str] = (),
    groups: Iterable[str] = (),
    groups_exclusive: Iterable[str] = (),
    nodes: Iterable[str] = (),
    nodes_exclusive: Iterable[str] = (),
    room: Iterable[str] = (),
    networks: Iterable[str] = (),
    networks_exclusive: Iterable[str] = (),
    cluster: Mode = Mode.SHARED,
    parameters: bool = False,
) -> Wanted:
    """Build a set of locks.

    Args:
        instance: name of the instance that is changed; it need not exist yet.
        new_name: that the instance is going to have.
        disks: UUIDs of those that belong to no instance, yet or any more.
        groups: shared: they stay.
        groups_exclusive: whose record is changed.
        nodes: shared: they may neither leave nor change their role.
        nodes_exclusive: whose record is changed.
        room: nodes on which memory or disk space is taken (their node-res lock), shared: who
            gets how much is settled by promises, see ``operations.placement.promises``.
        networks: by UUID, shared: they stay, and so do their connections.
        networks_exclusive: whose record or connections are changed.
        cluster: exclusive for what must be alone.
        parameters: whether the cluster's own parameters are changed.
    """
    modes = {BGL: cluster}
    if parameters:
        modes[PARAMETERS] = Mode.EXCLUSIVE
    for name in filter(None, (instance, new_name)):
        modes[LockName(Level.INSTANCE, name)] = Mode.EXCLUSIVE
    modes |= {LockName(Level.INSTANCE, f"disk {uuid}"): Mode.EXCLUSIVE for uuid in disks}
    modes |= {LockName(Level.GROUP, group): Mode.SHARED for group in groups}
    modes |= {LockName(Level.GROUP, group): Mode.EXCLUSIVE for group in groups_exclusive}
    modes |= {LockName(Level.NODE, node): Mode.SHARED for node in nodes}
    modes |= {LockName(Level.NODE, node): Mode.EXCLUSIVE for node in nodes_exclusive}
    modes |= {LockName(Level.NODE_RES, node): Mode.SHARED for node in room}
    modes |= {LockName(Level.NETWORK, network): Mode.SHARED for network in networks}
    modes |= {LockName(Level.NETWORK, each): Mode.EXCLUSIVE for each in networks_exclusive}
    return Wanted(modes)


def to_rows(wanted: Wanted) -> tuple[tuple[str, str], ...]:
    """Write a set of locks as it is kept in a job's row: ``(("node/…", "shared"), …)``."""
    return tuple(
        (f"{lock.level.name}/{lock.name}", mode.value)
        for lock, mode in sorted(wanted.locks.items())
    )


def from_rows(rows: Iterable[tuple[str, str]]) -> Wanted:
    """Read what ``to_rows`` wrote."""
    locks = {}
    for text, mode in rows:
        level, _, name = text.partition("/")
        locks[LockName(Level[level], name)] = Mode(mode)
    return Wanted(locks)
