"""One node that says what is not so, whatever it says."""

from itertools import product

import pytest

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName, Serial
from common.noderpc.mastership import REACH, Ballot
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Won
from tests.unit.quorum.cases import ME, RIVAL, UP_TO, stamp

LIES = tuple(
    Ballot(
        master=master, epoch=Epoch(epoch), granted_to=granted_to, stamp=state, newest_job=JobId(job)
    )
    for epoch in (0, 3, 4, 5, 3 + REACH, 4 + REACH, 2**53)
    for master, granted_to in product((None, ME, RIVAL), repeat=2)
    for state in (None, stamp(2, "twisted"), stamp(9), Stamp(epoch=Epoch(2**53), serial=Serial(9)))
    for job in (0, 2**53)
)


@pytest.mark.parametrize("nodes", range(3, UP_TO + 1))
@pytest.mark.parametrize("word", Word)
@pytest.mark.parametrize("mode", Mode)
def test_one_lying_node_neither_ends_nor_misleads_a_mastership(
    nodes: int, mode: Mode, word: Word
) -> None:
    """It says one thing when asked who is master, and another when asked for the epoch."""
    names = [ME, *(NodeName(f"n{number}") for number in range(1, nodes))]
    liar = names[-1]
    state = stamp(2)
    for count in range(1, nodes):  # the liar is no candidate
        candidates = frozenset(names[:count])
        question = Question(ME, frozenset(names), candidates, mode, word)
        honest = Ballot(master=ME, epoch=Epoch(3), stamp=state, newest_job=JobId(7))
        ways: dict[Won, set[Ballot]] = {}
        for lie in LIES:
            answers = dict.fromkeys(names, honest) | {liar: lie}
            won = decide(question, answers)
            assert isinstance(won, Won), (lie, won)
            assert (won.stamp, won.newest_job, won.overridden) == (state, 7, ()), lie
            assert won.epoch <= 4 + REACH, "what honest nodes grant"
            rivals = Ballot(master=RIVAL, epoch=Epoch(min(won.epoch + 1, 2**53)))
            ways.setdefault(won, {rivals}).add(lie)
        for won, others in ways.items():
            granting = Ballot(master=ME, epoch=won.epoch, stamp=state, newest_job=JobId(7))
            for other in others:
                answers = dict.fromkeys(names, granting) | {liar: other}
                assert confirm(question, won.epoch, answers) == won, other


@pytest.mark.parametrize("nodes", range(3, UP_TO + 1))
def test_one_lying_candidate_does_not_keep_the_others_from_an_epoch(nodes: int) -> None:
    names = [ME, *(NodeName(f"n{number}") for number in range(1, nodes))]
    question = Question(ME, frozenset(names), frozenset(names), Mode.TAKE_OVER)
    honest = Ballot(master=ME, epoch=Epoch(3), stamp=stamp(10), newest_job=JobId(7))
    for lie in LIES:
        won = decide(question, dict.fromkeys(names, honest) | {names[-1]: lie})
        assert isinstance(won, Won), lie
        assert won.epoch <= 4 + REACH, lie
        assert (won.stamp, won.newest_job) == (stamp(10), 7), lie
