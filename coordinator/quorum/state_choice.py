"""Whose state a new master starts from, and what a word of the operator's drops by that."""

from common.model.stamp import Stamp
from common.names import Epoch
from coordinator.quorum.astray import newest_job
from coordinator.quorum.objection import Diverged, Newer, NoState, Objection, Vanished
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
    if (local_is_right or overridden) and poll.seen:
        lost = max(sorted(poll.seen), key=lambda node: poll.seen[node].age)
        if poll.seen[lost].age > stamp.age:
            objections.append(Vanished(lost, poll.seen[lost], newest, stamp))
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
