"""The pool of master candidates: who fills it up, and the steps that change it.

A job that changes the pool may be resumed by the very node that it is about: when the
operator made that one the master meanwhile. The master stays a candidate, come what may.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from common.errors import Conflict, GntError
from common.model.instance import Instance
from common.model.node import Node
from common.noderpc.replica import Replica
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State

PAUSES_S = (2.0, 5.0)  # between attempts to have a node erase its state


def successors(config: Config, leaving: Node, now: float) -> tuple[Node, ...]:
    """Return the nodes that fill the pool up when ``leaving`` leaves it, as candidates."""
    if not leaving.master_candidate:
        return ()
    eligible = [
        node
        for node in config.sorted_nodes()
        if node.master_capable
        and not (node.master_candidate or node.offline or node.drained)
        and node.uuid != leaving.uuid
    ]
    missing = config.cluster.candidate_pool_size - (len(config.candidates()) - 1)
    return tuple(
        replace(node, master_candidate=True, mtime=now, serial_no=node.serial_no + 1)
        for node in eligible[: max(missing, 0)]
    )


def comes_back_to_room(config: Config, before: Node, after: Node) -> bool:
    """Tell whether a node is in service again that could be a candidate, and the pool has room.

    Only root makes candidates, who get the whole state; so the node does not become one by itself.
    """
    was_out = before.offline or before.drained
    may_be = after.master_capable and not (after.offline or after.drained)
    missing = config.cluster.candidate_pool_size - len(config.candidates())
    return was_out and may_be and not after.master_candidate and missing > 0


def check_master_stays(config: Config, before: Node, after: Node | None) -> None:
    """Refuse a change that the master cannot go through.

    Args:
        config: as it is now.
        before: a node.
        after: the node as it will be; None if it leaves the cluster.

    Raises:
        Conflict: it is the master.
    """
    if before.uuid != config.cluster.master:
        return
    if after is None or after.offline or after.drained or not after.master_candidate:
        raise Conflict(
            f"Node {before.name} is the master; move the mastership first, with "
            "“gnt-cluster master-failover” on another candidate.",
            node=before.name,
        )


def some(instances: Sequence[Instance]) -> str:
    """Name the first of some instances, and how many more there are."""
    more = f" and {len(instances) - 1} more" if len(instances) > 1 else ""
    return f"{instances[0].name}{more}"


def promote(cluster: Cluster, before: Node, after: Node) -> Iterator[Step]:
    """Make a node a candidate, once all nodes that can be reached would obey it.

    Otherwise a crash could leave it as the only one left to be master, and unknown to some.
    It gets its copy of the state with the last step, when the job is in the journal: whoever
    goes back erases it.
    """
    announced = replace(before, announced=True)
    yield change_node(before, announced, f"announce {after.name} as a master candidate")
    yield tell_roster(cluster, f"have all nodes listen to {after.name}")
    yield dataclasses.replace(
        change_node(announced, replace(after, announced=False)),
        undo=lambda: _erase(cluster, after),
    )


def change_node(before: Node, after: Node, title: str = "") -> Step:
    """Record a change of a node; undone, it is as before, unless it is the master by then.

    That a node is neither a candidate nor announced any more, or back in service, is final:
    whatever it says to that itself, nodes have been told.
    """

    def edit(state: State) -> Iterable[Update]:
        check_master_stays(state.config, before, after)
        return [_put(state, after)]

    def unedit(state: State) -> Iterable[Update]:
        is_master = state.config.cluster.master == before.uuid
        return [] if is_master and not before.master_candidate else [_put(state, before)]

    demotes = before.master_candidate and not (after.master_candidate or after.announced)
    return record(
        title or f"record the change of {after.name}",
        edit,
        unedit,
        point_of_no_return=demotes or (before.offline and not after.offline),
    )


def _put(state: State, node: Node) -> Put:
    """Put a node as a plan has it, with the keys that count by now."""
    present = state.config.nodes[node.uuid]
    return Put(replace(node, key=present.key, next_key=present.next_key))


def erase_state(cluster: Cluster, node: Node) -> Step:
    """Have a node that is no candidate any more keep no copy of the state."""

    async def erase() -> None:
        for pause_s in PAUSES_S:
            with suppress(GntError):  # mostly its noded is being restarted
                await _erase(cluster, node)
                return
            await cluster.sleep(pause_s)
        try:
            await _erase(cluster, node)
        except GntError as error:
            cluster.log(
                f"Node {node.name} still has an old copy of the state, which could not be "
                f"erased: {error} “gnt-cluster verify” tells of it."
            )

    return act(f"erase the state on {node.name}", erase)


async def _erase(cluster: Cluster, node: Node) -> None:
    """Erase the state where it could not be kept new; a candidate's is left alone."""
    if not cluster.config.nodes[node.uuid].master_candidate:
        await cluster.call(Replica, node).erase()
