"""Whose orders nodes take: the list, made from the state, and its way to the nodes."""

from common.errors import GntError
from common.noderpc.roster import Roster, Rosters
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.state.state import State


def roster_of(state: State) -> Roster:
    """Return the roster as it is in ``state``."""
    return Roster(
        epoch=state.stamp.epoch,
        serial=state.stamp.serial,
        candidates=state.config.obeyed(),
        following=state.config.obeyed_too(),
        revoked=state.config.cluster.revoked_keys,
    )


def tell_roster(cluster: Cluster, title: str = "tell all nodes who may give orders") -> Step:
    """Have all nodes obey whom they should by now, and nobody else.

    The publisher does the same after the fact, and goes on until every node has been told;
    this is for a job to end no sooner than it is so on all that can be reached.
    """
    return act(title, lambda: _tell(cluster))


async def _tell(cluster: Cluster) -> None:
    nodes = [node for node in cluster.config.sorted_nodes() if not node.offline]
    roster = roster_of(cluster.state)
    told = await cluster.each(
        {node.name: cluster.call(Rosters, node).publish(roster=roster) for node in nodes}
    )
    for name, outcome in told.items():
        if isinstance(outcome, GntError):
            cluster.log(
                f"Node {name} could not be told who may give orders; it will be, as soon as it "
                f"can be reached: {outcome}"
            )
