"""What an operator's word goes over, ``--no-voting`` and beyond, and what no word does."""

from dataclasses import replace

import pytest

from common.names import Epoch, JobId
from coordinator.quorum.decide import decide
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.objection import (
    Diverged,
    NamedOther,
    Newer,
    NewerElsewhere,
    NoCandidateMajority,
    NoMajority,
    NoState,
    NotCandidate,
    NotListening,
)
from coordinator.quorum.question import Mode, Word
from coordinator.quorum.verdict import Won
from tests.unit.quorum.small_clusters import (
    ALPHA,
    BETA,
    FIVE,
    GAMMA,
    NOW,
    OLD,
    TWISTED,
    TWO,
    ask,
    ballot,
    refusal,
    silent,
)


def test_two_nodes_of_which_one_is_dead() -> None:
    ballots = {ALPHA: ballot()}
    refused = decide(ask(voters=TWO), ballots, silent={BETA})
    assert refusal(refused) == NoMajority(1, 2, (BETA,))
    verdict = decide(ask(voters=TWO, word=Word.NO_VOTING), ballots, silent={BETA})
    assert isinstance(verdict, Won)
    assert [type(each) for each in verdict.overridden] == [
        NoMajority,
        NoCandidateMajority,
        NamedOther,
    ]


def test_a_word_that_was_not_needed_leaves_no_trace() -> None:
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(), GAMMA: ballot()}
    assert decide(ask(word=Word.NO_VOTING), ballots) == decide(ask(), ballots)


def test_a_newer_state_stops_a_plain_start() -> None:
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(BETA)}
    verdict = decide(ask(word=Word.NO_VOTING), ballots, silent={GAMMA})
    assert refusal(verdict) == Newer(ALPHA, OLD, BETA, NOW)


def test_a_take_over_fetches_what_is_within_reach() -> None:
    question = ask(ALPHA, Mode.TAKE_OVER, FIVE, FIVE, Word.NO_VOTING)
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot()}
    verdict = decide(question, ballots, silent=silent(question, ballots))
    assert isinstance(verdict, Won)
    assert verdict.newest == BETA


@pytest.mark.parametrize("mode", Mode)
def test_local_is_right(mode: Mode) -> None:
    question = ask(mode=mode, word=Word.LOCAL_IS_RIGHT)
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(), GAMMA: ballot(stamp=TWISTED)}
    verdict = decide(question, ballots)
    assert verdict == Won(
        Epoch(4),
        ALPHA,
        OLD,
        JobId(7),
        (Newer(ALPHA, OLD, BETA, NOW), Diverged(BETA, GAMMA, NOW)),
    )


@pytest.mark.parametrize("age", [None, NOW.age, (4, 1)])
@pytest.mark.parametrize("mode", Mode)
def test_a_node_that_refuses_to_listen_is_not_silent(
    mode: Mode, age: tuple[int, int] | None
) -> None:
    """Beta was told that alpha is no candidate any more."""
    heard = Heard(deaf={BETA: Deaf((BETA, GAMMA), age)})
    for word in (Word.NO_VOTING, Word.LOCAL_IS_RIGHT):
        question = ask(mode=mode, word=word)
        verdict = decide(question, {ALPHA: ballot()}, silent={BETA, GAMMA}, heard=heard)
        objection = NotListening(ALPHA, BETA, (BETA, GAMMA))
        if word is Word.NO_VOTING:
            assert refusal(verdict) == objection
        else:
            assert isinstance(verdict, Won)
            assert objection in verdict.overridden


def test_a_node_that_was_not_told_of_the_candidates_yet_is_as_a_silent_one() -> None:
    heard = Heard(deaf={BETA: Deaf((GAMMA,), OLD.age)})
    question = ask(word=Word.NO_VOTING)
    verdict = decide(question, {ALPHA: ballot()}, silent={BETA, GAMMA}, heard=heard)
    assert isinstance(verdict, Won)
    assert NotListening not in map(type, verdict.overridden)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_newer_state_of_one_who_is_no_candidate_by_our_lists_is_not_dropped(
    *, earlier: bool
) -> None:
    ballots = {ALPHA: ballot(stamp=OLD)} | ({} if earlier else {GAMMA: ballot()})
    heard = Heard(seen={GAMMA: NOW} if earlier else {})
    question = ask(candidates=TWO, word=Word.NO_VOTING, mode=Mode.TAKE_OVER)
    verdict = decide(question, ballots, silent={BETA, GAMMA}, heard=heard)
    assert refusal(verdict) == NewerElsewhere(ALPHA, GAMMA, NOW, OLD)
    stronger = replace(question, word=Word.LOCAL_IS_RIGHT)
    verdict = decide(stronger, ballots, silent={BETA, GAMMA}, heard=heard)
    assert isinstance(verdict, Won)
    assert (verdict.newest, verdict.stamp) == (ALPHA, OLD)


@pytest.mark.parametrize("word", Word)
def test_with_a_majority_one_node_that_does_not_listen_vetoes_nothing(word: Word) -> None:
    heard = Heard(seen={GAMMA: NOW}, deaf={GAMMA: Deaf((GAMMA,))})
    question = ask(candidates=TWO, word=word)
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(stamp=OLD)}
    verdict = decide(question, ballots, silent={GAMMA}, heard=heard)
    assert isinstance(verdict, Won)
    assert not verdict.overridden


@pytest.mark.parametrize("word", Word)
def test_no_word_replaces_a_majority_that_does_not_listen(word: Word) -> None:
    heard = Heard(deaf={BETA: Deaf((BETA,)), GAMMA: Deaf((BETA,))})
    verdict = decide(ask(word=word), {ALPHA: ballot()}, silent={BETA, GAMMA}, heard=heard)
    assert refusal(verdict) == NotCandidate(ALPHA, (BETA,))


@pytest.mark.parametrize("word", Word)
def test_a_node_that_does_not_listen_to_itself_is_no_candidate(word: Word) -> None:
    heard = Heard(deaf={ALPHA: Deaf((BETA,))})
    verdict = decide(ask(word=word), {BETA: ballot()}, silent={ALPHA, GAMMA}, heard=heard)
    assert refusal(verdict) == NotCandidate(ALPHA, (BETA,))


@pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
def test_no_word_replaces_a_state(word: Word) -> None:
    ballots = {ALPHA: ballot(stamp=None)}
    verdict = decide(ask(word=word), ballots, silent={BETA, GAMMA})
    assert refusal(verdict) == NoState(ALPHA)


def test_deposed_nodes_may_refuse_a_plain_start_only() -> None:
    assert ask().only_if_named
    assert not ask(word=Word.NO_VOTING).only_if_named
    assert not ask(mode=Mode.TAKE_OVER).only_if_named
