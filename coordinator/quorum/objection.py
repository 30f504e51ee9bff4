"""What can stand in the way of a new master; each says so in a sentence for the operator."""

from dataclasses import dataclass

from common.model.stamp import Stamp
from common.names import Epoch, NodeName
from coordinator.quorum.astray import Astray
from coordinator.quorum.majority import needed


@dataclass(frozen=True, slots=True)
class NotCandidate:
    """Only a master candidate can become master."""

    me: NodeName
    candidates: tuple[NodeName, ...]

    def __str__(self) -> str:
        return (
            f"{self.me} is not among the master candidates; start the master on one of them: "
            f"{_list(self.candidates)}."
        )


@dataclass(frozen=True, slots=True)
class LocalSilent:
    """A coordinator works through its own node daemon, so it cannot do without."""

    me: NodeName

    def __str__(self) -> str:
        return f"The node daemon on {self.me} itself does not answer; start gantry-noded first."


@dataclass(frozen=True, slots=True)
class NoMajority:
    """Too few nodes answered or, with an epoch, granted it."""

    count: int
    voters: int
    missing: tuple[NodeName, ...]
    epoch: Epoch | None = None

    def __str__(self) -> str:
        did = "answered" if self.epoch is None else f"granted epoch {self.epoch}"
        return (
            f"Only {self.count} of {self.voters} nodes {did}, {needed(self.voters)} are needed; "
            f"missing: {_list(self.missing)}."
        )


@dataclass(frozen=True, slots=True)
class NoCandidateMajority:
    """Too few candidates showed the state they hold: a newer one could be on the others."""

    count: int
    candidates: int
    missing: tuple[NodeName, ...]  # silent, without a state, or unwilling
    epoch: Epoch | None = None

    def __str__(self) -> str:
        did = "showed their state" if self.epoch is None else f"granted epoch {self.epoch}"
        return (
            f"Only {self.count} of {self.candidates} master candidates {did}, "
            f"{needed(self.candidates)} are needed; missing: {_list(self.missing)}."
        )


@dataclass(frozen=True, slots=True)
class NamedOther:
    """On a plain start the quorum does not name this node."""

    me: NodeName
    count: int  # nodes that name me
    voters: int
    master: NodeName | None  # the node that most of the others name
    by: tuple[NodeName, ...]
    of: str = "nodes"  # or only the master candidates among them

    def __str__(self) -> str:
        start = f"{self.count} of {self.voters} {self.of} name {self.me} as master"
        if self.master is None:
            return f"{start}, {needed(self.voters)} are needed."
        return (
            f"{start}; {self.master} is named by {_list(self.by)}. "
            f"To make {self.me} the master, run gnt-cluster master-failover on it."
        )


@dataclass(frozen=True, slots=True)
class Newer:
    """Another node holds a newer state, and starting from ours would throw it away."""

    me: NodeName
    mine: Stamp
    node: NodeName
    stamp: Stamp

    def __str__(self) -> str:
        return (
            f"{self.node} holds a newer state ({_age(self.stamp)}) than {self.me} "
            f"({_age(self.mine)}); run gnt-cluster master-failover to start from it."
        )


@dataclass(frozen=True, slots=True)
class Vanished:
    """A newer state was shown a moment ago, and cannot be had any more."""

    node: NodeName
    stamp: Stamp
    newest: NodeName  # of those that can be had
    at: Stamp

    def __str__(self) -> str:
        return (
            f"{self.node} showed a newer state ({_age(self.stamp)}) and does not give it now; the "
            f"newest within reach is {self.newest}'s ({_age(self.at)}). Wait until {self.node} "
            "answers, or say with --local-is-right that what only it holds may be lost."
        )


@dataclass(frozen=True, slots=True)
class NewerElsewhere:
    """A node that is no candidate by our lists holds a state that is newer than they are."""

    me: NodeName
    node: NodeName
    stamp: Stamp
    at: Stamp  # the newest of the candidates that can be had

    def __str__(self) -> str:
        return (
            f"{self.node} shows a newer state ({_age(self.stamp)}) than the candidates that "
            f"{self.me} knows of ({_age(self.at)}), of which it is none: it may have been promoted "
            f"since. Run gnt-cluster master-failover on {self.node}, or say with --local-is-right "
            "that what it holds may be lost."
        )


@dataclass(frozen=True, slots=True)
class NotListening:
    """A node within reach has a newer roster without us, and does not show what it holds."""

    me: NodeName
    node: NodeName
    listed: tuple[NodeName, ...]  # to whom it listens

    def __str__(self) -> str:
        return (
            f"{self.node} answers, but does not listen to {self.me}, only to "
            f"{_list(self.listed)}: {self.me} was demoted since its state was stored, and others "
            "may hold changes that it has not seen. Run gnt-cluster master-failover on one of "
            "those, or say with --local-is-right that such changes may be lost."
        )


@dataclass(frozen=True, slots=True)
class Diverged:
    """Two nodes hold different states under the same number.

    Two masters were put into one epoch by the operator's word, or a disk is bad.
    """

    one: NodeName
    other: NodeName
    stamp: Stamp  # of ``one``

    def __str__(self) -> str:
        return (
            f"{self.one} and {self.other} hold different states under the same number "
            f"({_age(self.stamp)}); start the master on the node whose state is right, "
            "with the word that it is."
        )


@dataclass(frozen=True, slots=True)
class NoState:
    """Nobody to start from."""

    me: NodeName

    def __str__(self) -> str:
        return f"No state to start from is within reach of {self.me}; restore one, or join anew."


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Between question and grant another node came first; ask again from the beginning."""

    node: NodeName
    epoch: Epoch
    master: NodeName | None

    def __str__(self) -> str:
        return f"{self.node} has granted epoch {self.epoch} to {self.master} in the meantime."


@dataclass(frozen=True, slots=True)
class TakingOver:
    """Another node has been granted an epoch, and may be about to begin with it."""

    master: NodeName
    epoch: Epoch

    def __str__(self) -> str:
        return f"{self.master} is taking over, with epoch {self.epoch}; it is left some time."


Objection = (
    NotCandidate
    | NotListening
    | LocalSilent
    | NoMajority
    | NoCandidateMajority
    | NamedOther
    | Newer
    | NewerElsewhere
    | Diverged
    | NoState
    | Overtaken
    | TakingOver
    | Vanished
    | Astray
)


def _list(names: tuple[NodeName, ...]) -> str:
    return ", ".join(names) or "none"


def _age(stamp: Stamp) -> str:
    return f"epoch {stamp.epoch}, serial {stamp.serial}"
