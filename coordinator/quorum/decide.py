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
2. ask again if the newest state seen has other lists of nodes than one's own;
3. ask every node for that epoch, with ``only_if_named`` of the question; then for its ballot;
4. ``confirm`` over these ballots: whether the epoch is ours, and which state is the newest;
5. fetch that state if it isn't the local one; if it has other lists of nodes, begin again;
6. commit "took over as master", with what was overridden; from then on go about the work.

A take-over may fail or die on its way, and must leave the cluster with its master. So a node
names the one whose orders it *obeyed* last, and a grant without an order changes nothing of that:
until the first commit of the new epoch is on the disks of a majority of the candidates, the old
master may come back with a plain start, in a higher epoch; from then on it may not. For a plain
start at least half of the candidates have to name me, both before they are asked for the epoch
and after they granted it. Half and a majority have a candidate in common: if it obeyed the other
before, it does not name me; if it granted me the epoch before, it refuses the other's commit.
(Half is enough, and a majority would be too much: of two candidates one may have stored the commit
that the other never saw.) An old master leaves a take-over the time to end (``Question.yields``);
safety does not depend on that.

Nodes may lie, and only majorities decide: one node cannot veto, neither by claiming that a later
epoch was granted, which only means that *its* grant is missing, nor by absurd numbers (``astray``).
How new a state is, and which job is the newest, is asked of candidates alone. Leaving out an
answer is always safe: it is as if the node had been silent.

The operator's word (``Word``) replaces votes that can't be had, as with two nodes of which one
is dead. It replaces nothing that was seen, in this round or an earlier one: a newer state
within reach is fetched by a take-over and stops a plain start, and one that was shown and then
could not be had any more stops both, since "this node is right" and "that node is newer" can't
both be meant; only ``LOCAL_IS_RIGHT`` says that they are. Our own lists may be old, too: a node
that answers, but does not listen to us, may have been told that we are no candidate any more, and
one that shows a newer state may be a candidate of which we have not heard. A majority would have
told us, so with one neither matters; both stop a word that is to replace it. One liar can thus
keep a word from being used, but no majority from its master. What the word set aside is part of
the verdict, so that it gets recorded; a word that was not needed leaves no trace.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from common.names import Epoch, NodeName
from common.noderpc.mastership import REACH
from coordinator.quorum.heard import Heard
from coordinator.quorum.majority import is_majority
from coordinator.quorum.objection import (
    LocalSilent,
    NamedOther,
    NoCandidateMajority,
    NoMajority,
    NotCandidate,
    Objection,
    Overtaken,
    TakingOver,
)
from coordinator.quorum.poll import Ballots, Poll
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.state_choice import choose_state
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won

TOO_FEW = (NoMajority, NoCandidateMajority)
NOTHING = Heard()


def decide(
    question: Question,
    ballots: Ballots,
    *,
    silent: Collection[NodeName] = frozenset(),
    heard: Heard = NOTHING,
) -> Verdict:
    """Decide whether ``question.me`` may ask for the next epoch.

    Args:
        question: who asks, whom, and why.
        ballots: the answers so far, the own one included.
        silent: nodes that gave no ballot and are not waited for any longer; all others
            without a ballot are pending. While a pending candidate could hold a newer state,
            the verdict is to wait: how long is up to the caller.
        heard: who of the silent does not listen to ``me``, and what was shown in earlier rounds.
    """
    poll = Poll.of(question, ballots, silent, heard)
    epoch = Epoch(1 + max((poll.claim_of(node) for node in poll.ballots), default=0))
    if epoch <= question.above < epoch + REACH:
        epoch = Epoch(question.above + 1)
    verdict = _judge(poll, frozenset(poll.ballots), epoch, asked=None)
    if isinstance(verdict, Won) and question.yields and (other := _taking_over(poll)):
        return Refused(other)
    return verdict


def confirm(
    question: Question,
    epoch: Epoch,
    ballots: Ballots,
    *,
    silent: Collection[NodeName] = frozenset(),
    heard: Heard = NOTHING,
) -> Verdict:
    """Decide whether ``epoch`` has been granted by enough nodes.

    Args:
        question: the one that ``decide`` was asked.
        epoch: the one that the nodes were asked for.
        ballots: the answers so far, each taken *after* the node was asked for the epoch.
        silent: as for ``decide``.
        heard: as for ``decide``, with the states of its ballots.
    """
    poll = Poll.of(question, ballots, silent, heard)
    ours = (epoch, question.me)
    granted = frozenset(n for n, b in poll.ballots.items() if (b.epoch, b.holder) == ours)
    others = {
        n: b for n, b in sorted(poll.ballots.items()) if b.epoch >= epoch and n not in granted
    }
    overtaken = next((Overtaken(n, b.epoch, b.holder) for n, b in others.items()), None)
    groups = question.voters, question.candidates
    if overtaken and any(is_majority(len(others.keys() & each), len(each)) for each in groups):
        return Refused(overtaken)
    verdict = _judge(poll, granted, epoch, asked=epoch)
    if overtaken and isinstance(verdict, Refused) and isinstance(verdict.objection, TOO_FEW):
        return Refused(overtaken)  # tells more
    return verdict


def _judge(
    poll: Poll, in_favour: frozenset[NodeName], epoch: Epoch, *, asked: Epoch | None
) -> Verdict:
    question, me = poll.question, poll.question.me
    if me not in question.candidates:
        return Refused(NotCandidate(me, tuple(sorted(question.candidates))))
    if me in poll.deaf or is_majority(len(poll.deaf), len(question.voters)):
        # They will not grant anything, whatever our own lists say.
        told = poll.deaf.get(me) or next(iter(poll.deaf.values()))
        return Refused(NotCandidate(me, told.listed))
    if me not in poll.ballots and me not in poll.pending:
        mine = next((each for each in poll.astray if each.node == me), None)
        return Refused(mine or LocalSilent(me))

    # Grant the pending nodes everything they could say: what is still missing is final.
    certain = tuple(_shortfalls(poll, in_favour, poll.pending, asked))
    if certain and (question.word is Word.NONE or me not in in_favour | poll.pending):
        return Refused(certain[0])
    missing = tuple(_shortfalls(poll, in_favour, frozenset(), asked)) if poll.pending else certain
    if awaited := poll.pending & question.candidates:
        return _wait(awaited, missing)
    verdict = choose_state(poll, epoch, certain)
    if isinstance(verdict, Won) and missing and poll.pending:
        return _wait(poll.pending, missing)
    return verdict


def _wait(awaited: frozenset[NodeName], missing: tuple[Objection, ...]) -> Wait:
    reason = f"Waiting for {', '.join(sorted(awaited))}."
    return Wait(awaited, f"{missing[0]} {reason}" if missing else reason)


def _shortfalls(
    poll: Poll,
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
    if poll.question.mode is not Mode.START:
        return
    naming = poll.naming(poll.question.me, candidates=True) & in_favour
    if 2 * len(naming | hoped & candidates) < len(candidates):
        yield _named_other(poll, len(naming), candidates)
        return
    naming = poll.naming(poll.question.me, candidates=False)
    if asked is None and not is_majority(len(naming | hoped), len(voters)):
        yield _named_other(poll, len(naming), voters)


def _named_other(poll: Poll, count: int, group: frozenset[NodeName]) -> NamedOther:
    me = poll.question.me
    named = {n: b.master for n, b in sorted(poll.ballots.items()) if n in group}
    others = Counter(other for other in named.values() if other not in (None, me))
    master = others.most_common(1)[0][0] if others else None
    by = tuple(node for node, other in named.items() if master and other == master)
    of = "nodes" if group == poll.question.voters else "master candidates"
    return NamedOther(me, count, len(group), master, by, of)


def _taking_over(poll: Poll) -> TakingOver | None:
    """Return who is on the way to becoming master: a candidate whose own node granted it."""
    for node, ballot in sorted(poll.ballots.items()):
        if node in poll.question.candidates and ballot.granted_to == node != poll.question.me:
            return TakingOver(node, ballot.epoch)
    return None
