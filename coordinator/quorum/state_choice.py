"""Whose state a new master starts from, and what a word of the operator's drops by that."""

from collections.abc import Iterator, Mapping

from common.model.stamp import Stamp
from common.names import Epoch, NodeName
from coordinator.quorum.astray import newest_job
from coordinator.quorum.objection import (
    Diverged,
    Newer,
    NewerElsewhere,
    NoState,
    NotListening,
    Objection,
    Vanished,
)
from coordinator.quorum.poll import Poll
from coordinator.quorum.question import Mode, Word
from coordinator.quorum.verdict import Refused, Verdict, Won


def choose_state(poll: Poll, epoch: Epoch, overridden: tuple[Objection, ...]) -> Verdict:
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
    if (local_is_right or overridden) and (lost := _newer(poll.seen, stamp)):
        objections.append(Vanished(lost, poll.seen[lost], newest, stamp))
    if overridden:
        objections.extend(_known_elsewhere(poll, stamp))
    for other in sorted(poll.states):
        if poll.states[other].age == stamp.age and poll.states[other] != stamp:
            objections.append(Diverged(newest, other, stamp))
            break
    if objections and not local_is_right:
        return Refused(objections[0])
    if local_is_right:
        newest, stamp = me, mine
    said = [b for node, b in poll.ballots.items() if node in question.candidates]
    return Won(epoch, newest, stamp, newest_job(said), (*overridden, *objections))


def _known_elsewhere(poll: Poll, stamp: Stamp) -> Iterator[Objection]:
    """Yield which nodes within reach may know of changes after the lists that we go by."""
    me = poll.question.me
    if node := _newer(poll.elsewhere, stamp):
        yield NewerElsewhere(me, node, poll.elsewhere[node], stamp)
    for node, told in poll.deaf.items():
        if told.may_know_more(stamp):
            yield NotListening(me, node, told.listed)


def _newer(states: Mapping[NodeName, Stamp], than: Stamp) -> NodeName | None:
    """Return whose state is the newest of all, if it is newer than one."""
    newest = max(sorted(states), key=lambda node: states[node].age, default=None)
    return newest if newest is not None and states[newest].age > than.age else None
