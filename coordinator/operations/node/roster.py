"""Whose orders nodes take: the list, made from the state, and its way to the nodes."""

from enum import Enum, auto

from msgspec.structs import replace

from common.errors import GntError, NotFound
from common.noderpc.roster import HeldRoster, Roster, Rosters
from common.revoked_keys import RevokedKeys
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.state.state import State

UNKNOWING = (
    "was told of all revoked certificates, and says that it knows others; look at its disk, and "
    "have it told again with “gnt-cluster redist-conf”."
)


def roster_of(state: State) -> Roster:
    """Return the roster as it is in ``state``, with all of its revoked keys."""
    return Roster(
        epoch=state.stamp.epoch,
        serial=state.stamp.serial,
        candidates=state.config.obeyed(),
        following=state.config.obeyed_too(),
        revoked=state.config.revoked.keys,
    )


class Knows(Enum):
    """What a node says of the revoked keys after it was told of them."""

    ALL = auto()
    OTHERS = auto()
    OTHERS_AS_TOLD_LATER = auto()  # of a newer state, by who may have told it in part


async def publish(rosters: Rosters, state: State) -> Knows:
    """Have a node obey whom it should, and tell it of the revoked keys what it does not know.

    What it says to know decides what it is told, and nothing else.

    Raises:
        GntError: it does not listen.
    """
    roster, revoked = roster_of(state), state.config.revoked
    brief = replace(roster, revoked=())
    try:
        held = await rosters.update(roster=brief, revocations=revoked.lately())
        if _known(held, roster, revoked) is Knows.OTHERS:
            missing = revoked.after(revoked.known_to(held.revoked))
            held = await rosters.update(roster=brief, revocations=missing)
    except NotFound:  # a node of an older version knows no such call
        await rosters.publish(roster=roster)
        return Knows.ALL
    return _known(held, roster, revoked)


def _known(held: HeldRoster, roster: Roster, revoked: RevokedKeys) -> Knows:
    if held.revoked == revoked.held:
        return Knows.ALL
    return Knows.OTHERS if held.age <= roster.age else Knows.OTHERS_AS_TOLD_LATER


def tell_roster(cluster: Cluster, title: str = "tell all nodes who may give orders") -> Step:
    """Have all nodes obey whom they should by now, and nobody else.

    The publisher does the same after the fact, and goes on until every node has been told;
    this is for a job to end no sooner than it is so on all that can be reached.
    """
    return act(title, lambda: _tell(cluster))


async def _tell(cluster: Cluster) -> None:
    nodes = [node for node in cluster.config.sorted_nodes() if not node.offline]
    state = cluster.state
    told = await cluster.each(
        {node.name: publish(cluster.call(Rosters, node), state) for node in nodes}
    )
    for name, outcome in told.items():
        if isinstance(outcome, GntError):
            cluster.log(
                f"Node {name} could not be told who may give orders; it will be, as soon as it "
                f"can be reached: {outcome}"
            )
        elif outcome is Knows.OTHERS:
            cluster.log(f"Node {name} {UNKNOWING}")
