"""The rules one by one, as stories of small clusters."""

from dataclasses import replace

import pytest

from common.model.stamp import Stamp
from common.names import Epoch, JobId, Serial
from common.noderpc.mastership import Ballot
from coordinator.quorum.astray import Astray, sort_out
from coordinator.quorum.decide import decide
from coordinator.quorum.objection import (
    Diverged,
    LocalSilent,
    NamedOther,
    NoCandidateMajority,
    NoMajority,
    NotCandidate,
    TakingOver,
)
from coordinator.quorum.question import Mode, Word
from coordinator.quorum.verdict import Wait, Won
from tests.unit.quorum.small_clusters import (
    ALPHA,
    BETA,
    DELTA,
    EPSILON,
    FIVE,
    GAMMA,
    NOW,
    OLD,
    THREE,
    TWISTED,
    TWO,
    ask,
    ballot,
    refusal,
)


def test_plain_start() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot(), GAMMA: ballot(epoch=2, job=9)}
    assert decide(ask(), ballots) == Won(Epoch(4), ALPHA, NOW, JobId(9))


def test_a_silent_minority_does_not_matter() -> None:
    verdict = decide(ask(), {ALPHA: ballot(), BETA: ballot()}, silent={GAMMA})
    assert isinstance(verdict, Won)


def test_half_of_the_nodes_is_not_enough() -> None:
    voters = FIVE - {EPSILON}
    verdict = decide(
        ask(voters=voters, candidates=TWO),
        {ALPHA: ballot(), BETA: ballot()},
        silent={GAMMA, DELTA},
    )
    assert refusal(verdict) == NoMajority(2, 4, (DELTA, GAMMA))
    assert str(refusal(verdict)) == (
        "Only 2 of 4 nodes answered, 3 are needed; missing: delta, gamma."
    )


def test_candidates_need_a_majority_of_their_own() -> None:
    ballots = {ALPHA: ballot(), DELTA: ballot(stamp=None), EPSILON: ballot(stamp=None)}
    verdict = decide(ask(voters=FIVE, candidates=THREE), ballots, silent={BETA, GAMMA})
    assert refusal(verdict) == NoCandidateMajority(1, 3, (BETA, GAMMA))


@pytest.mark.parametrize("lost", [None, Stamp()])
def test_a_candidate_that_lost_its_state_vouches_for_nothing(lost: Stamp | None) -> None:
    """Alpha and beta held a commit; alpha is dead, beta got a new disk, gamma never had it."""
    ballots = {GAMMA: ballot(stamp=OLD), BETA: ballot(stamp=lost)}
    verdict = decide(ask(GAMMA, Mode.TAKE_OVER), ballots, silent={ALPHA})
    assert refusal(verdict) == NoCandidateMajority(1, 3, (ALPHA, BETA))


def test_a_deposed_master_hears_who_is_master() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot(BETA, epoch=4), GAMMA: ballot(BETA, epoch=4)}
    objection = refusal(decide(ask(), ballots))
    assert objection == NamedOther(ALPHA, 1, 3, BETA, (BETA, GAMMA))
    assert str(objection) == (
        "1 of 3 nodes name alpha as master; beta is named by beta, gamma. "
        "To make alpha the master, run gnt-cluster master-failover on it."
    )


def test_it_is_refused_without_waiting_for_votes_that_change_nothing() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot(BETA), GAMMA: ballot(BETA), DELTA: ballot(BETA)}
    assert isinstance(refusal(decide(ask(voters=FIVE), ballots)), NamedOther)


def test_nodes_that_know_no_master_do_not_confirm_one() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot(None), GAMMA: ballot(None)}
    assert refusal(decide(ask(), ballots)) == NamedOther(ALPHA, 1, 3, None, ())


def test_take_over_needs_no_names_and_fetches_the_newest() -> None:
    ballots = {GAMMA: ballot(stamp=OLD), BETA: ballot(stamp=NOW)}
    verdict = decide(ask(GAMMA, Mode.TAKE_OVER), ballots, silent={ALPHA})
    assert verdict == Won(Epoch(4), BETA, NOW, JobId(7))


def test_plain_start_with_an_old_replica_fetches_too() -> None:
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(), GAMMA: ballot()}
    verdict = decide(ask(), ballots)
    assert isinstance(verdict, Won)
    assert (verdict.newest, verdict.stamp) == (BETA, NOW)


def test_nothing_is_fetched_from_a_node_that_is_no_candidate() -> None:
    ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(stamp=OLD), GAMMA: ballot(stamp=NOW)}
    verdict = decide(ask(candidates=TWO), ballots)
    assert isinstance(verdict, Won)
    assert verdict.stamp == OLD


def test_epoch_goes_before_serial() -> None:
    late = Stamp(epoch=Epoch(4), serial=Serial(5), digest="l")
    ballots = {ALPHA: ballot(), BETA: ballot(stamp=late, epoch=4), GAMMA: ballot()}
    verdict = decide(ask(mode=Mode.TAKE_OVER), ballots)
    assert verdict == Won(Epoch(5), BETA, late, JobId(7))


def test_only_candidates_become_master() -> None:
    question = ask(DELTA, Mode.TAKE_OVER, FIVE, THREE)
    verdict = decide(question, {name: ballot() for name in FIVE})
    assert refusal(verdict) == NotCandidate(DELTA, (ALPHA, BETA, GAMMA))
    assert "alpha, beta, gamma" in str(refusal(verdict))


def test_a_pending_candidate_is_waited_for() -> None:
    verdict = decide(ask(), {ALPHA: ballot(), BETA: ballot()})
    assert verdict == Wait(frozenset({GAMMA}), "Waiting for gamma.")


def test_a_pending_node_without_a_state_is_not_waited_for() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot()}
    assert isinstance(decide(ask(candidates=TWO), ballots), Won)


def test_waiting_says_what_is_missing() -> None:
    verdict = decide(ask(), {ALPHA: ballot()}, silent={BETA})
    assert isinstance(verdict, Wait)
    assert verdict.reason == (
        "Only 1 of 3 nodes answered, 2 are needed; missing: beta, gamma. Waiting for gamma."
    )


def test_nothing_goes_without_the_local_node_daemon() -> None:
    ballots = {BETA: ballot(), GAMMA: ballot()}
    for word in Word:
        assert refusal(decide(ask(word=word), ballots, silent={ALPHA})) == LocalSilent(ALPHA)


def test_two_states_under_one_number() -> None:
    ballots = {ALPHA: ballot(), BETA: ballot(stamp=TWISTED), GAMMA: ballot(stamp=OLD)}
    objection = refusal(decide(ask(), ballots))
    assert objection == Diverged(ALPHA, BETA, NOW)
    assert "alpha and beta hold different states" in str(objection)


def test_a_newer_state_settles_an_old_quarrel() -> None:
    newer = Stamp(epoch=Epoch(4), serial=Serial(13), digest="d13")
    ballots = {ALPHA: ballot(), BETA: ballot(stamp=TWISTED), GAMMA: ballot(stamp=newer)}
    verdict = decide(ask(), ballots)
    assert isinstance(verdict, Won)
    assert verdict.newest == GAMMA


class TestATakeOverUnderWay:
    """Grants without an order yet: beta has been granted epoch 4, and alpha is the master."""

    UNUSED = Ballot(master=ALPHA, epoch=Epoch(4), granted_to=BETA, stamp=NOW)

    def test_it_is_left_time_to_end(self) -> None:
        ballots = {ALPHA: ballot(), BETA: self.UNUSED, GAMMA: self.UNUSED}
        assert refusal(decide(replace(ask(), yields=True), ballots)) == TakingOver(BETA, Epoch(4))
        assert decide(ask(), ballots) == Won(Epoch(5), ALPHA, NOW, JobId(7))

    def test_one_that_is_told_by_others_only_is_not_waited_for(self) -> None:
        ballots = {ALPHA: ballot(), BETA: ballot(), GAMMA: self.UNUSED}
        assert isinstance(decide(replace(ask(), yields=True), ballots), Won)

    def test_who_took_over_starts_though_other_nodes_had_no_order_yet(self) -> None:
        used = ballot(BETA, epoch=4)
        ballots = {
            ALPHA: ballot(),
            BETA: used,
            GAMMA: used,
            DELTA: self.UNUSED,
            EPSILON: self.UNUSED,
        }
        question = ask(BETA, voters=FIVE, candidates=THREE)
        assert isinstance(decide(question, ballots), Won)
        objection = refusal(decide(ask(voters=FIVE, candidates=THREE), ballots))
        assert objection == NamedOther(ALPHA, 1, 3, BETA, (BETA, GAMMA), "master candidates")


class TestAbsurdNumbers:
    ABSURD = 2**53

    def test_an_absurd_epoch_is_not_gone_beyond(self) -> None:
        ballots = {ALPHA: ballot(), BETA: ballot(), GAMMA: ballot(epoch=self.ABSURD)}
        assert decide(ask(), ballots) == Won(Epoch(4), ALPHA, NOW, JobId(7))
        (told,) = sort_out(ballots, THREE)[1]
        assert told == Astray(GAMMA, Epoch(self.ABSURD), Epoch(3))
        assert "gamma claims epoch 9007199254740992" in str(told)

    @pytest.mark.parametrize("mode", Mode)
    def test_of_two_nodes_the_absurd_one_is_not_the_measure(self, mode: Mode) -> None:
        ballots = {ALPHA: ballot(), BETA: ballot(BETA, epoch=self.ABSURD)}
        verdict = decide(ask(mode=mode, voters=TWO, word=Word.NO_VOTING), ballots)
        assert isinstance(verdict, Won)
        assert verdict.epoch == 4

    @pytest.mark.parametrize(("above", "epoch"), [(0, 4), (3, 4), (9, 10), (2**53, 4)])
    def test_what_one_node_said_is_gone_beyond_if_it_is_sane(self, above: int, epoch: int) -> None:
        ballots = {ALPHA: ballot(), BETA: ballot(), GAMMA: ballot()}
        verdict = decide(replace(ask(), above=Epoch(above)), ballots)
        assert isinstance(verdict, Won)
        assert verdict.epoch == epoch

    def test_the_own_node_astray_is_told(self) -> None:
        ballots = {ALPHA: ballot(epoch=self.ABSURD), BETA: ballot(), GAMMA: ballot()}
        assert refusal(decide(ask(), ballots)) == Astray(ALPHA, Epoch(self.ABSURD), Epoch(3))

    def test_a_state_of_who_is_no_candidate_raises_no_epoch(self) -> None:
        late = Stamp(epoch=Epoch(1000), serial=Serial(5), digest="l")
        ballots = {ALPHA: ballot(), BETA: ballot(), GAMMA: ballot(stamp=late, job=1000)}
        assert decide(ask(candidates=TWO), ballots) == Won(Epoch(4), ALPHA, NOW, JobId(7))

    def test_an_absurd_job_uses_up_no_numbers(self) -> None:
        ballots = {ALPHA: ballot(), BETA: ballot(job=9), GAMMA: ballot(job=self.ABSURD)}
        assert decide(ask(), ballots) == Won(Epoch(4), ALPHA, NOW, JobId(9))
