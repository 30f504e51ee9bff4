"""A master that was granted its epoch is confirmed, or not."""

import pytest

from common.names import Epoch, JobId
from common.noderpc.mastership import Ballot
from coordinator.quorum.decide import confirm
from coordinator.quorum.heard import Heard
from coordinator.quorum.objection import NoCandidateMajority, NoMajority, Overtaken, Vanished
from coordinator.quorum.question import Mode, Word
from coordinator.quorum.verdict import Won
from tests.unit.quorum.small_clusters import ALPHA, BETA, GAMMA, NOW, OLD, TWO, ask, ballot, refusal


def test_a_majority_of_grants() -> None:
    granted = ballot(BETA, epoch=4)
    question = ask(BETA, Mode.TAKE_OVER)
    verdict = confirm(question, Epoch(4), {BETA: granted, GAMMA: granted}, silent={ALPHA})
    assert verdict == Won(Epoch(4), BETA, NOW, JobId(7))


def test_the_state_is_the_one_seen_after_the_grant() -> None:
    """The old master stored one more commit between ballot and grant."""
    granted = {BETA: ballot(BETA, OLD, 4), GAMMA: ballot(BETA, NOW, 4)}
    verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), granted, silent={ALPHA})
    assert isinstance(verdict, Won)
    assert (verdict.newest, verdict.stamp) == (GAMMA, NOW)


def test_an_answer_is_no_grant() -> None:
    ballots = {BETA: ballot(BETA, epoch=4), GAMMA: ballot(), ALPHA: ballot()}
    verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), ballots)
    assert refusal(verdict) == NoMajority(1, 3, (ALPHA, GAMMA), Epoch(4))
    assert "granted epoch 4" in str(refusal(verdict))


@pytest.mark.parametrize("epoch", [4, 5])
def test_another_came_first(epoch: int) -> None:
    granted, other = ballot(BETA, epoch=4), ballot(GAMMA, epoch=epoch)
    for word in Word:
        question = ask(BETA, Mode.TAKE_OVER, word=word)
        verdict = confirm(question, Epoch(4), {BETA: granted, ALPHA: other, GAMMA: other})
        assert refusal(verdict) == Overtaken(ALPHA, Epoch(epoch), GAMMA)


@pytest.mark.parametrize("epoch", [4, 5, 2**53])
def test_one_node_that_says_another_came_first_vetoes_nothing(epoch: int) -> None:
    granted = ballot(BETA, epoch=4)
    ballots = {BETA: granted, ALPHA: granted, GAMMA: ballot(GAMMA, epoch=epoch)}
    for word in Word:
        verdict = confirm(ask(BETA, Mode.TAKE_OVER, word=word), Epoch(4), ballots)
        assert isinstance(verdict, Won)
        assert not verdict.overridden
    with_one_silent = {BETA: granted, GAMMA: ballots[GAMMA]}
    verdict = confirm(
        ask(BETA, Mode.TAKE_OVER, word=Word.NO_VOTING),
        Epoch(4),
        with_one_silent,
        silent={ALPHA},
    )
    assert isinstance(verdict, Won)
    assert [type(each) for each in verdict.overridden] == [NoMajority, NoCandidateMajority]


def test_a_grant_that_was_not_used_yet_is_a_grant() -> None:
    granted = Ballot(master=ALPHA, epoch=Epoch(4), granted_to=BETA, stamp=NOW)
    ballots = {BETA: granted, GAMMA: granted}
    verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), ballots, silent={ALPHA})
    assert isinstance(verdict, Won)


def test_the_word_replaces_grants_but_the_own() -> None:
    question = ask(word=Word.NO_VOTING, voters=TWO)
    granted = confirm(question, Epoch(4), {ALPHA: ballot(epoch=4)}, silent={BETA})
    assert isinstance(granted, Won)
    assert [type(each) for each in granted.overridden] == [NoMajority, NoCandidateMajority]
    unwilling = confirm(question, Epoch(4), {ALPHA: ballot(epoch=3)}, silent={BETA})
    assert isinstance(refusal(unwilling), NoMajority)


def test_the_word_does_not_go_below_a_state_that_was_shown() -> None:
    """Beta showed it with its ballot, and its grant waits for a disk."""
    granted, seen = {ALPHA: ballot(stamp=OLD, epoch=4)}, {BETA: NOW}
    for mode in Mode:
        question = ask(mode=mode, word=Word.NO_VOTING)
        verdict = confirm(question, Epoch(4), granted, silent={BETA, GAMMA}, heard=Heard(seen=seen))
        assert refusal(verdict) == Vanished(BETA, NOW, ALPHA, OLD)
    question = ask(word=Word.LOCAL_IS_RIGHT)
    verdict = confirm(question, Epoch(4), granted, silent={BETA, GAMMA}, heard=Heard(seen=seen))
    assert isinstance(verdict, Won)
    assert Vanished(BETA, NOW, ALPHA, OLD) in verdict.overridden


def test_a_majority_needs_nothing_that_was_shown_besides() -> None:
    """What only a minority had was acknowledged to nobody."""
    granted = ballot(BETA, OLD, 4)
    ballots, seen = {BETA: granted, GAMMA: granted}, {ALPHA: NOW}
    question = ask(BETA, Mode.TAKE_OVER)
    verdict = confirm(question, Epoch(4), ballots, silent={ALPHA}, heard=Heard(seen=seen))
    assert isinstance(verdict, Won)
