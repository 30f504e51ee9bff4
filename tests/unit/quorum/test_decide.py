"""The rules one by one, as stories of small clusters."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName, Serial
from common.noderpc.mastership import Ballot
from coordinator.quorum.astray import Astray, sort_out
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.objection import (
    Diverged,
    LocalSilent,
    NamedOther,
    Newer,
    NewerElsewhere,
    NoCandidateMajority,
    NoMajority,
    NoState,
    NotCandidate,
    NotListening,
    Overtaken,
    TakingOver,
    Vanished,
)
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won

ALPHA, BETA, GAMMA, DELTA, EPSILON = (
    NodeName(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon")
)
FIVE = frozenset({ALPHA, BETA, GAMMA, DELTA, EPSILON})
THREE = frozenset({ALPHA, BETA, GAMMA})
TWO = frozenset({ALPHA, BETA})
OLD = Stamp(epoch=Epoch(3), serial=Serial(11), digest="d11")
NOW = Stamp(epoch=Epoch(3), serial=Serial(12), digest="d12")
TWISTED = Stamp(epoch=Epoch(3), serial=Serial(12), digest="x12")


def ballot(
    master: NodeName | None = ALPHA, stamp: Stamp | None = NOW, epoch: int = 3, job: int = 7
) -> Ballot:
    known = None if stamp is None else JobId(job)
    return Ballot(master=master, epoch=Epoch(epoch), stamp=stamp, newest_job=known)


def ask(
    me: NodeName = ALPHA,
    mode: Mode = Mode.START,
    voters: frozenset[NodeName] = THREE,
    candidates: frozenset[NodeName] | None = None,
    word: Word = Word.NONE,
) -> Question:
    return Question(me, voters, voters if candidates is None else candidates, mode, word)


def refusal(verdict: Verdict) -> object:
    assert isinstance(verdict, Refused), verdict
    assert verdict.reason.endswith(".")
    return verdict.objection


def silent(question: Question, ballots: Iterable[NodeName]) -> frozenset[NodeName]:
    return question.voters - frozenset(ballots)


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


class TestTheOperatorsWord:
    """``--no-voting`` and beyond."""

    def test_two_nodes_of_which_one_is_dead(self) -> None:
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

    def test_a_word_that_was_not_needed_leaves_no_trace(self) -> None:
        ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(), GAMMA: ballot()}
        assert decide(ask(word=Word.NO_VOTING), ballots) == decide(ask(), ballots)

    def test_a_newer_state_stops_a_plain_start(self) -> None:
        ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(BETA)}
        verdict = decide(ask(word=Word.NO_VOTING), ballots, silent={GAMMA})
        assert refusal(verdict) == Newer(ALPHA, OLD, BETA, NOW)

    def test_a_take_over_fetches_what_is_within_reach(self) -> None:
        question = ask(ALPHA, Mode.TAKE_OVER, FIVE, FIVE, Word.NO_VOTING)
        ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot()}
        verdict = decide(question, ballots, silent=silent(question, ballots))
        assert isinstance(verdict, Won)
        assert verdict.newest == BETA

    @pytest.mark.parametrize("mode", Mode)
    def test_local_is_right(self, mode: Mode) -> None:
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
        self, mode: Mode, age: tuple[int, int] | None
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

    def test_a_node_that_was_not_told_of_the_candidates_yet_is_as_a_silent_one(self) -> None:
        heard = Heard(deaf={BETA: Deaf((GAMMA,), OLD.age)})
        question = ask(word=Word.NO_VOTING)
        verdict = decide(question, {ALPHA: ballot()}, silent={BETA, GAMMA}, heard=heard)
        assert isinstance(verdict, Won)
        assert NotListening not in map(type, verdict.overridden)

    @pytest.mark.parametrize("earlier", [False, True])
    def test_a_newer_state_of_one_who_is_no_candidate_by_our_lists_is_not_dropped(
        self, *, earlier: bool
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
    def test_with_a_majority_one_node_that_does_not_listen_vetoes_nothing(self, word: Word) -> None:
        heard = Heard(seen={GAMMA: NOW}, deaf={GAMMA: Deaf((GAMMA,))})
        question = ask(candidates=TWO, word=word)
        ballots = {ALPHA: ballot(stamp=OLD), BETA: ballot(stamp=OLD)}
        verdict = decide(question, ballots, silent={GAMMA}, heard=heard)
        assert isinstance(verdict, Won)
        assert not verdict.overridden

    @pytest.mark.parametrize("word", Word)
    def test_no_word_replaces_a_majority_that_does_not_listen(self, word: Word) -> None:
        heard = Heard(deaf={BETA: Deaf((BETA,)), GAMMA: Deaf((BETA,))})
        verdict = decide(ask(word=word), {ALPHA: ballot()}, silent={BETA, GAMMA}, heard=heard)
        assert refusal(verdict) == NotCandidate(ALPHA, (BETA,))

    @pytest.mark.parametrize("word", Word)
    def test_a_node_that_does_not_listen_to_itself_is_no_candidate(self, word: Word) -> None:
        heard = Heard(deaf={ALPHA: Deaf((BETA,))})
        verdict = decide(ask(word=word), {BETA: ballot()}, silent={ALPHA, GAMMA}, heard=heard)
        assert refusal(verdict) == NotCandidate(ALPHA, (BETA,))

    @pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
    def test_no_word_replaces_a_state(self, word: Word) -> None:
        ballots = {ALPHA: ballot(stamp=None)}
        verdict = decide(ask(word=word), ballots, silent={BETA, GAMMA})
        assert refusal(verdict) == NoState(ALPHA)

    def test_deposed_nodes_may_refuse_a_plain_start_only(self) -> None:
        assert ask().only_if_named
        assert not ask(word=Word.NO_VOTING).only_if_named
        assert not ask(mode=Mode.TAKE_OVER).only_if_named


class TestConfirm:
    def test_a_majority_of_grants(self) -> None:
        granted = ballot(BETA, epoch=4)
        question = ask(BETA, Mode.TAKE_OVER)
        verdict = confirm(question, Epoch(4), {BETA: granted, GAMMA: granted}, silent={ALPHA})
        assert verdict == Won(Epoch(4), BETA, NOW, JobId(7))

    def test_the_state_is_the_one_seen_after_the_grant(self) -> None:
        """The old master stored one more commit between ballot and grant."""
        granted = {BETA: ballot(BETA, OLD, 4), GAMMA: ballot(BETA, NOW, 4)}
        verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), granted, silent={ALPHA})
        assert isinstance(verdict, Won)
        assert (verdict.newest, verdict.stamp) == (GAMMA, NOW)

    def test_an_answer_is_no_grant(self) -> None:
        ballots = {BETA: ballot(BETA, epoch=4), GAMMA: ballot(), ALPHA: ballot()}
        verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), ballots)
        assert refusal(verdict) == NoMajority(1, 3, (ALPHA, GAMMA), Epoch(4))
        assert "granted epoch 4" in str(refusal(verdict))

    @pytest.mark.parametrize("epoch", [4, 5])
    def test_another_came_first(self, epoch: int) -> None:
        granted, other = ballot(BETA, epoch=4), ballot(GAMMA, epoch=epoch)
        for word in Word:
            question = ask(BETA, Mode.TAKE_OVER, word=word)
            verdict = confirm(question, Epoch(4), {BETA: granted, ALPHA: other, GAMMA: other})
            assert refusal(verdict) == Overtaken(ALPHA, Epoch(epoch), GAMMA)

    @pytest.mark.parametrize("epoch", [4, 5, 2**53])
    def test_one_node_that_says_another_came_first_vetoes_nothing(self, epoch: int) -> None:
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

    def test_a_grant_that_was_not_used_yet_is_a_grant(self) -> None:
        granted = Ballot(master=ALPHA, epoch=Epoch(4), granted_to=BETA, stamp=NOW)
        ballots = {BETA: granted, GAMMA: granted}
        verdict = confirm(ask(BETA, Mode.TAKE_OVER), Epoch(4), ballots, silent={ALPHA})
        assert isinstance(verdict, Won)

    def test_the_word_replaces_grants_but_the_own(self) -> None:
        question = ask(word=Word.NO_VOTING, voters=TWO)
        granted = confirm(question, Epoch(4), {ALPHA: ballot(epoch=4)}, silent={BETA})
        assert isinstance(granted, Won)
        assert [type(each) for each in granted.overridden] == [NoMajority, NoCandidateMajority]
        unwilling = confirm(question, Epoch(4), {ALPHA: ballot(epoch=3)}, silent={BETA})
        assert isinstance(refusal(unwilling), NoMajority)

    def test_the_word_does_not_go_below_a_state_that_was_shown(self) -> None:
        """Beta showed it with its ballot, and its grant waits for a disk."""
        granted, seen = {ALPHA: ballot(stamp=OLD, epoch=4)}, {BETA: NOW}
        for mode in Mode:
            question = ask(mode=mode, word=Word.NO_VOTING)
            verdict = confirm(
                question, Epoch(4), granted, silent={BETA, GAMMA}, heard=Heard(seen=seen)
            )
            assert refusal(verdict) == Vanished(BETA, NOW, ALPHA, OLD)
        question = ask(word=Word.LOCAL_IS_RIGHT)
        verdict = confirm(question, Epoch(4), granted, silent={BETA, GAMMA}, heard=Heard(seen=seen))
        assert isinstance(verdict, Won)
        assert Vanished(BETA, NOW, ALPHA, OLD) in verdict.overridden

    def test_a_majority_needs_nothing_that_was_shown_besides(self) -> None:
        """What only a minority had was acknowledged to nobody."""
        granted = ballot(BETA, OLD, 4)
        ballots, seen = {BETA: granted, GAMMA: granted}, {ALPHA: NOW}
        question = ask(BETA, Mode.TAKE_OVER)
        verdict = confirm(question, Epoch(4), ballots, silent={ALPHA}, heard=Heard(seen=seen))
        assert isinstance(verdict, Won)


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
