"""What a node asks before it starts as master."""

import enum
from dataclasses import dataclass

from common.names import Epoch, NodeName

NO_EPOCH = Epoch(0)


class Mode(enum.Enum):
    """Why the node wants to be master."""

    START = "start"  # it believes it is; the others have to name it
    TAKE_OVER = "take over"  # the operator tells it to become master


class Word(enum.Enum):
    """What the operator vouches for, beyond what the nodes can confirm."""

    NONE = "none"
    NO_VOTING = "no voting"  # no other master runs; whoever is silent need not be asked
    LOCAL_IS_RIGHT = "local is right"  # and newer states on other nodes may be thrown away


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks whom for what.

    The two lists are those of the state that the master is going to start from: after
    fetching a newer state, ask again with its lists.
    """

    me: NodeName
    voters: frozenset[NodeName]  # every node of the cluster, offline ones and me included
    candidates: frozenset[NodeName]
    mode: Mode
    word: Word = Word.NONE
    above: Epoch = NO_EPOCH  # what one node said it granted: ask for a later one, if that is sane
    yields: bool = False  # a plain start: whether a take-over under way is left time to end

    @property
    def only_if_named(self) -> bool:
        """Whether nodes that did not name another shall refuse the grant unless they name me.

        Between a node's ballot and its grant another may have taken over. A deposed master that
        comes back with ballots from before that must not disturb the new one.
        """
        return self.mode is Mode.START and self.word is Word.NONE
