"""Is this node still the master? Asked of all nodes by one who has not heard of them for long."""

import enum
from collections import Counter
from collections.abc import Collection, Mapping

from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.majority import is_majority


class Standing(enum.Enum):
    CONFIRMED = "confirmed"  # nobody else can have won an epoch before these answers were given
    UNKNOWN = "unknown"  # too few answer: as in a network that is cut
    IN_DOUBT = "in doubt"  # most have granted a later epoch, or listen to others


def judge_standing(
    me: NodeName,
    epoch: Epoch,
    ballots: Mapping[NodeName, Ballot],
    voters: Collection[NodeName],
    candidates: Collection[NodeName],
    *,
    deaf: Collection[NodeName] = (),
) -> Standing:
    """Tell how ``me``, master since ``epoch``, stands; ``deaf`` nodes do not listen to it at all.

    A later epoch is won with the grants of majorities of both groups only, so it was not if a
    majority of either has granted none. One node that says so is no reason for doubt.
    """
    loyal = {node for node, b in ballots.items() if (b.epoch, b.holder) == (epoch, me)}
    later = {node for node, b in ballots.items() if b.epoch > epoch} | set(deaf)
    for group in (set(voters), set(candidates)):
        if is_majority(len(loyal & group), len(group)):
            return Standing.CONFIRMED
    for group in (set(voters), set(candidates)):
        if is_majority(len(later & group), len(group)):
            return Standing.IN_DOUBT
    return Standing.UNKNOWN


def named_most(ballots: Collection[Ballot], epoch: Epoch) -> NodeName | None:
    """Return to whom most of the later epochs were granted."""
    holders = Counter(b.holder for b in ballots if b.epoch > epoch and b.holder is not None)
    return max(sorted(holders), key=holders.__getitem__, default=None)
