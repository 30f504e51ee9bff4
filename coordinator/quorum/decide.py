"""May this node be master? A confirmation, not an election.

Two masters must never act at the same time, and no master may miss a commit that was
acknowledged. Both follow from counting majorities:

* A node grants an epoch once, to one node, and then obeys no lower one. An epoch is won with
  the grants of more than half of the nodes; two majorities have a node in common, so it is
  won by one node at most, and the master of the epoch before can't reach a majority any more.
* A commit is acknowledged when more than half of the candidates have it on disk. An epoch is
  won with the grants of more than half of the candidates *that show the state they hold*; the
  two majorities have a candidate in common, so the newest state seen contains the commit.

For the second to hold the states must be seen *after* the grants: until a node has granted the
new epoch, the old master may still be storing commits on it. And what a new master found counts
as acknowledged only once a commit of its own epoch is durable on top: a state that only a
minority holds may be newer than its number says to whoever does not see that minority.
So a master begins like this:

1. ``decide`` over the ballots of all nodes: whether to go on, and for which epoch to ask;
2. ask every node for that epoch, with ``only_if_named`` of the question; then for its ballot;
3. ``confirm`` over these ballots: whether the epoch is ours, and which state is the newest;
4. fetch that state if it isn't the local one; if it has other lists of nodes, begin again;
5. commit "took over as master", with what was overridden; from then on go about the work.

The operator's word (``Word``) replaces votes that can't be had, as with two nodes of which one
is dead (M40). It replaces nothing that was seen: a newer state within reach is fetched by a
take-over and stops a plain start, since "this node is right" and "that node is newer" can't
both be meant; only ``LOCAL_IS_RIGHT`` says that they are. What the word set aside is part of
the verdict, so that it gets recorded; a word that was not needed leaves no trace.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.majority import is_majority
from coordinator.quorum.objection import (
    Diverged,
    LocalSilent,
    NamedOther,
    Newer,
    NoCandidateMajority,
    NoMajority,
    NoState,
    NotCandidate,
    Objection,
    Overtaken,
)
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won

Ballots = Mapping[NodeName, Ballot]


def decide(
    question: Question, ballots: Ballots, *, silent: Collection[NodeName] = frozenset()
) -> Verdict:
    """Decide whether ``question.me`` may ask for the next epoch.

    Args:
        question: who asks, whom, and why.
        ballots: the answers so far, the own one included.
        silent: nodes that did not answer and are not waited for any longer; all others
            without a ballot are pending. While a pending candidate could hold a newer state,
            the verdict is to wait: how long is up to the caller.
    """
    poll = _Poll.of(question, ballots, silent)
    epoch = Epoch(1 + max((_seen(ballot) for ballot in poll.ballots.values()), default=0))
    return _judge(poll, frozenset(poll.ballots), epoch, asked=None)


def confirm(
    question: Question,
    epoch: Epoch,
    ballots: Ballots,
    *,
    silent: Collection[NodeName] = frozenset(),
) -> Verdict:
    """Decide whether ``epoch`` has been granted by enough nodes.

    Args:
        question: the one that ``decide`` was asked.
        epoch: the one that the nodes were asked for.
        ballots: the answers so far, each taken *after* the node was asked for the epoch.
        silent: as for ``decide``.
    """
    poll = _Poll.of(question, ballots, silent)
    for node, ballot in sorted(poll.ballots.items()):
        if (ballot.epoch, ballot.master) != (epoch, question.me) and ballot.epoch >= epoch:
            return Refused(Overtaken(node, ballot.epoch, ballot.master))
    granted = frozenset(node for node, ballot in poll.ballots.items() if ballot.epoch == epoch)
    return _judge(poll, granted, epoch, asked=epoch)


@dataclass(frozen=True, slots=True)
class _Poll:
    """The answers of the voters, and who may still answer."""

    question: Question
    ballots: dict[NodeName, Ballot]
    pending: frozenset[NodeName]
    states: dict[NodeName, Stamp]  # of the candidates that hold one

    @classmethod
    def of(cls, question: Question, ballots: Ballots, silent: Collection[NodeName]) -> Self:
        counted = {node: ballots[node] for node in question.voters if node in ballots}
        # A candidate with an empty replica (new, or with a new disk) answers, but its answer
        # says nothing about what the others acknowledged: it is no part of their majority.
        states = {
            node: ballot.stamp
            for node, ballot in counted.items()
            if node in question.candidates and ballot.stamp is not None and ballot.stamp.serial
        }
        pending = question.voters - counted.keys() - frozenset(silent)
        return cls(question, counted, pending, states)


def _judge(
    poll: _Poll, in_favour: frozenset[NodeName], epoch: Epoch, *, asked: Epoch | None
) -> Verdict:
    question, me = poll.question, poll.question.me
    if me not in question.candidates:
        return Refused(NotCandidate(me, tuple(sorted(question.candidates))))
    if me not in poll.ballots and me not in poll.pending:
        return Refused(LocalSilent(me))

    # Grant the pending nodes everything they could say: what is still missing is final.
    certain = tuple(_shortfalls(poll, in_favour, poll.pending, asked))
    if certain and (question.word is Word.NONE or me not in in_favour | poll.pending):
        return Refused(certain[0])
    missing = tuple(_shortfalls(poll, in_favour, frozenset(), asked))
    if awaited := poll.pending & question.candidates:
        return _wait(awaited, missing)
    verdict = _choose_state(poll, epoch, certain)
    if isinstance(verdict, Won) and missing and poll.pending:
        return _wait(poll.pending, missing)
    return verdict


def _wait(awaited: frozenset[NodeName], missing: tuple[Objection, ...]) -> Wait:
    reason = f"Waiting for {', '.join(sorted(awaited))}."
    return Wait(awaited, f"{missing[0]} {reason}" if missing else reason)


def _shortfalls(
    poll: _Poll,
    in_favour: frozenset[NodeName],
    hoped: frozenset[NodeName],
    asked: Epoch | None,
) -> Iterator[Objection]:
    """Yield which majorities are missing even if ``hoped`` are in favour too."""
    voters, candidates = poll.question.voters, poll.question.candidates
    able = in_favour | hoped
    if not is_majority(len(able), len(voters)):
        yield NoMajority(len(in_favour), len(voters), tuple(sorted(voters - in_favour)), asked)
    showing = in_favour & poll.states.keys()
    if not is_majority(len(showing | hoped & candidates), len(candidates)):
        missing = tuple(sorted(candidates - showing))
        yield NoCandidateMajority(len(showing), len(candidates), missing, asked)
    if asked is None and poll.question.mode is Mode.START:
        named = {node for node, ballot in poll.ballots.items() if ballot.master == poll.question.me}
        if not is_majority(len(named | hoped), len(voters)):
            yield _named_other(poll, len(named))


def _named_other(poll: _Poll, count: int) -> NamedOther:
    me = poll.question.me
    others = Counter(
        ballot.master
        for _, ballot in sorted(poll.ballots.items())
        if ballot.master is not None and ballot.master != me
    )
    master = others.most_common(1)[0][0] if others else None
    by = tuple(n for n, b in sorted(poll.ballots.items()) if master and b.master == master)
    return NamedOther(me, count, len(poll.question.voters), master, by)


def _choose_state(poll: _Poll, epoch: Epoch, overridden: tuple[Objection, ...]) -> Verdict:
    """Choose whose state to start from; every candidate that can be asked has answered."""
    question, me = poll.question, poll.question.me
    local_is_right = question.word is Word.LOCAL_IS_RIGHT
    if not poll.states or (local_is_right and me not in poll.states):
        return Refused(NoState(me))
    newest = max(sorted(poll.states), key=lambda node: (poll.states[node].age, node == me))
    stamp = poll.states[newest]
    mine = poll.states.get(me, Stamp())
    objections: list[Objection] = []
    if newest != me and (local_is_right or (overridden and question.mode is Mode.START)):
        objections.append(Newer(me, mine, newest, stamp))
    for other in sorted(poll.states):
        if poll.states[other].age == stamp.age and poll.states[other] != stamp:
            objections.append(Diverged(newest, other, stamp))
            break
    if objections and not local_is_right:
        return Refused(objections[0])
    if local_is_right:
        newest, stamp = me, mine
    newest_job = max(ballot.newest_job or JobId(0) for ballot in poll.ballots.values())
    return Won(epoch, newest, stamp, newest_job, (*overridden, *objections))


def _seen(ballot: Ballot) -> int:
    return max(ballot.epoch, ballot.stamp.epoch if ballot.stamp else 0)
