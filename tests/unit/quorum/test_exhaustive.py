"""Every combination of answers in clusters of up to five nodes.

The nodes besides ``me`` are interchangeable, so a case is what I say, what the other
candidates say and what the other nodes say, the latter two as multisets. So are the two states of
the same age: of two cases that differ only in which is which, the first is decided.
"""

import enum
from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

import pytest

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName, Serial
from common.noderpc.mastership import REACH, Ballot
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.objection import NotCandidate
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won

UP_TO = 5
ME, RIVAL = NodeName("me"), NodeName("rival")
NAMES = (ME, *(NodeName(f"n{number}") for number in range(1, UP_TO)))


def stamp(serial: int, digest: str = "") -> Stamp:
    return Stamp(epoch=Epoch(3), serial=Serial(serial), digest=digest or str(serial))


class Says(enum.Enum):
    """All that a node can do, as far as the rules tell one answer from another."""

    NOTHING_YET = ("pending",)
    NOTHING = ("silent",)
    ME_WITHOUT_STATE = ("answers", ME, None)
    ME_OLD = ("answers", ME, stamp(1))
    ME_NEW = ("answers", ME, stamp(2))
    ME_TWISTED = ("answers", ME, stamp(2, "twisted"))
    ME_NEWEST = ("answers", ME, stamp(3))
    RIVAL_WITHOUT_STATE = ("answers", RIVAL, None)
    RIVAL_OLD = ("answers", RIVAL, stamp(1))
    RIVAL_NEW = ("answers", RIVAL, stamp(2))
    RIVAL_TWISTED = ("answers", RIVAL, stamp(2, "twisted"))
    RIVAL_NEWEST = ("answers", RIVAL, stamp(3))

    def __init__(
        self, does: str, master: NodeName | None = None, state: Stamp | None = None
    ) -> None:
        self.state = state
        self.ballot = Ballot(master=master, epoch=Epoch(3), stamp=state) if master else None
        self.names_me = master == ME

    __hash__ = object.__hash__  # these are hashed millions of times


@cache
def alphabet(mode: Mode, *, candidate: bool) -> tuple[Says, ...]:
    """What a node may say; in a take-over it does not matter whom it names."""
    return tuple(
        says
        for says in Says
        if (candidate or says.state is None)
        and (mode is Mode.START or not says.ballot or says.ballot.master == ME)
    )


ORDER = {says: place for place, says in enumerate(Says)}
TWINS = {
    Says.ME_NEW: Says.ME_TWISTED,
    Says.ME_TWISTED: Says.ME_NEW,
    Says.RIVAL_NEW: Says.RIVAL_TWISTED,
    Says.RIVAL_TWISTED: Says.RIVAL_NEW,
}


class Case(NamedTuple):
    mine: Says
    candidates: tuple[Says, ...]  # of the others, in the order of Says
    others: tuple[Says, ...]  # without a state

    @property
    def all(self) -> tuple[Says, ...]:
        return (self.mine, *self.candidates, *self.others)

    @property
    def twin(self) -> "Case":
        """Return the case with the two states of the same age exchanged."""
        mine, *theirs = (TWINS.get(says, says) for says in (self.mine, *self.candidates))
        return Case(mine, _in_order(*theirs), self.others)

    @property
    def first(self) -> "Case":
        """Return of this and its twin the one that is decided for both."""
        if TWINS.keys().isdisjoint((self.mine, *self.candidates)):
            return self
        return min(self, self.twin, key=lambda case: [ORDER[says] for says in case.all])

    def with_one_more_answer(self, mode: Mode) -> Iterator["Case"]:
        pending, *answers = alphabet(mode, candidate=True)
        if self.mine is pending:
            yield from (Case(says, self.candidates, self.others) for says in answers)
        if pending in self.candidates:
            rest = list(self.candidates)
            rest.remove(pending)
            for says in answers:
                yield Case(self.mine, _in_order(*rest, says), self.others)
        if pending in self.others:
            rest = list(self.others)
            rest.remove(pending)
            for says in alphabet(mode, candidate=False)[1:]:
                yield Case(self.mine, self.candidates, _in_order(*rest, says))


def _in_order(*group: Says) -> tuple[Says, ...]:
    return tuple(sorted(group, key=ORDER.__getitem__))


def cases(nodes: int, mode: Mode) -> Iterator[Case]:
    return (case for case in all_cases(nodes, mode) if case == case.first)


def all_cases(nodes: int, mode: Mode) -> Iterator[Case]:
    stateful, stateless = (alphabet(mode, candidate=each) for each in (True, False))
    for candidates in range(nodes):
        theirs = combinations_with_replacement(stateful, candidates)
        rest = tuple(combinations_with_replacement(stateless, nodes - 1 - candidates))
        for group, others, mine in product(theirs, rest, stateful):
            yield Case(mine, group, others)


@cache
def verdict_on(case: Case, mode: Mode, word: Word) -> Verdict:
    said = case.all
    return decide(
        question(len(said), 1 + len(case.candidates), mode, word),
        {name: says.ballot for name, says in zip(NAMES, said, strict=False) if says.ballot},
        silent=[name for name, says in zip(NAMES, said, strict=False) if says is Says.NOTHING],
    )


@cache
def question(nodes: int, candidates: int, mode: Mode, word: Word) -> Question:
    return Question(ME, frozenset(NAMES[:nodes]), frozenset(NAMES[:candidates]), mode, word)


def expected(case: Case, mode: Mode, word: Word) -> Stamp | None:
    """The rules once more, for when nobody is pending: the state to start from, or None."""
    answers = [says.ballot for says in case.all if says.ballot]
    states = [says.state for says in (case.mine, *case.candidates) if says.state]
    quorum = (
        2 * len(answers) > len(case.all)
        and 2 * len(states) > 1 + len(case.candidates)
        and (
            mode is Mode.TAKE_OVER
            or (
                2 * sum(says.names_me for says in case.all) > len(case.all)
                and 2 * sum(says.names_me for says in (case.mine, *case.candidates))
                >= 1 + len(case.candidates)
            )
        )
    )
    if case.mine.ballot is None or not states or not (quorum or word is not Word.NONE):
        return None
    if word is Word.LOCAL_IS_RIGHT:
        return case.mine.state
    newest = max(states, key=lambda state: state.age)
    alike = {state.digest for state in states if state.age == newest.age}
    mine = case.mine.state.age if case.mine.state else (0, 0)
    loses_something = mode is Mode.START and not quorum and mine < newest.age
    return None if len(alike) > 1 or loses_something else newest


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("nodes", range(1, UP_TO + 1))
def test_every_case(nodes: int, mode: Mode) -> None:
    for case in cases(nodes, mode):
        later = {each.first for each in case.with_one_more_answer(mode)}
        for word in Word:
            verdict = verdict_on(case, mode, word)
            if Says.NOTHING_YET not in case.all:
                assert not isinstance(verdict, Wait), case
                state = verdict.stamp if isinstance(verdict, Won) else None
                assert state == expected(case, mode, word), case
            else:
                check_with_pending(case, word, verdict, [verdict_on(c, mode, word) for c in later])
            if isinstance(verdict, Won) and word is Word.NONE:
                assert not verdict.overridden, case


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("word", Word)
def test_which_of_two_states_is_which_does_not_matter(mode: Mode, word: Word) -> None:
    """That is why twins are decided once."""
    exchanged = {stamp(2): stamp(2, "twisted"), stamp(2, "twisted"): stamp(2)}
    for nodes in range(1, 4):
        for case in all_cases(nodes, mode):
            verdict, twin = (verdict_on(each, mode, word) for each in (case, case.twin))
            assert type(verdict) is type(twin), case
            if isinstance(verdict, Won) and isinstance(twin, Won):
                assert twin.stamp == exchanged.get(verdict.stamp, verdict.stamp), case


@pytest.mark.parametrize("mode", Mode)
def test_of_twins_one_is_decided(mode: Mode) -> None:
    every = set(all_cases(3, mode))
    assert {each for case in cases(3, mode) for each in (case, case.twin)} == every
    assert len(set(cases(3, mode))) == len({frozenset({case, case.twin}) for case in every})


def check_with_pending(case: Case, word: Word, verdict: Verdict, later: list[Verdict]) -> None:
    """A decision stands whatever comes later; waiting is worth it."""
    match verdict:
        case Refused():
            assert all(isinstance(each, Refused) for each in later), case
        case Won():
            assert all(each == verdict for each in later if isinstance(each, Won)), case
            assert all(isinstance(each, Won) for each in later), case
        case Wait():
            # With the operator's word all candidates are heard, whether that helps or not.
            hope = any(isinstance(each, Won | Wait) for each in later)
            assert hope or word is not Word.NONE, case


@pytest.mark.parametrize("nodes", range(1, UP_TO + 1))
def test_who_is_no_candidate_never_wins(nodes: int) -> None:
    names = [ME, *(NodeName(f"n{number}") for number in range(1, nodes))]
    for size in range(nodes):
        for candidates in combinations(names[1:], size):
            for mode, word in product(Mode, Word):
                ballots = {name: Ballot(master=ME, epoch=Epoch(1)) for name in names}
                question = Question(ME, frozenset(names), frozenset(candidates), mode, word)
                verdict = decide(question, ballots)
                assert isinstance(verdict, Refused)
                assert isinstance(verdict.objection, NotCandidate)


@pytest.mark.parametrize("nodes", range(2, UP_TO + 1))
def test_an_epoch_is_won_once(nodes: int) -> None:
    """Each node granted the epoch to one, to the other or to nobody; each sees its grants only."""
    names = tuple(NodeName(f"n{number}") for number in range(nodes))
    one, other = names[:2]
    for candidates in _subsets(names):
        for grants in product((one, other, None), repeat=nodes):
            winners = [
                me
                for me in (one, other)
                if isinstance(
                    confirm(
                        Question(me, frozenset(names), candidates, Mode.TAKE_OVER),
                        Epoch(4),
                        {
                            name: Ballot(master=me, epoch=Epoch(4), stamp=stamp(1))
                            for name, to in zip(names, grants, strict=True)
                            if to == me
                        },
                        silent=set(names),
                    ),
                    Won,
                )
            ]
            assert len(winners) <= 1, (candidates, grants)


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
        for lie in LIES:
            answers = dict.fromkeys(names, honest) | {liar: lie}
            won = decide(question, answers)
            assert isinstance(won, Won), (lie, won)
            assert (won.stamp, won.newest_job, won.overridden) == (state, 7, ()), lie
            assert won.epoch <= 4 + REACH, "what honest nodes grant"
            granting = Ballot(master=ME, epoch=won.epoch, stamp=state, newest_job=JobId(7))
            for other in (lie, Ballot(master=RIVAL, epoch=Epoch(min(won.epoch + 1, 2**53)))):
                answers = dict.fromkeys(names, granting) | {liar: other}
                assert confirm(question, won.epoch, answers) == won, (lie, other)


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


def _subsets(names: tuple[NodeName, ...]) -> Iterator[frozenset[NodeName]]:
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))


class Holds(enum.Enum):
    """What a candidate has on disk when commit 2 was acknowledged, or was not."""

    NOTHING = None
    BEFORE = stamp(1)
    IT = stamp(2)
    ONE_MORE = stamp(3)  # not acknowledged: only a minority has it


@pytest.mark.parametrize("nodes", range(1, UP_TO + 1))
@pytest.mark.parametrize("mode", Mode)
def test_a_winner_finds_every_acknowledged_commit(nodes: int, mode: Mode) -> None:
    names = tuple(NodeName(f"n{number}") for number in range(nodes))
    for number in range(1, nodes + 1):
        candidates = frozenset(names[:number])
        question = Question(names[0], frozenset(names), candidates, mode)
        for held in product(Holds, repeat=number):
            if 2 * sum(each in (Holds.IT, Holds.ONE_MORE) for each in held) <= number:
                continue  # not acknowledged
            states = dict(zip(names, (each.value for each in held), strict=False))
            for answering in _subsets(names):
                ballots = {
                    name: Ballot(master=names[0], epoch=Epoch(3), stamp=states.get(name))
                    for name in answering
                }
                verdict = decide(question, ballots, silent=set(names))
                if isinstance(verdict, Won):
                    assert verdict.stamp.serial >= 2, (held, answering)


class Told(enum.Enum):
    """What a node besides me does while it may hold acknowledged changes; I hold commit 2."""

    NOTHING = enum.auto()
    OLDER = stamp(1)
    NEWER = stamp(3)
    DEAF = Deaf((RIVAL,), (3, 3))


@pytest.mark.parametrize("nodes", range(2, UP_TO + 1))
@pytest.mark.parametrize("mode", Mode)
def test_no_word_replaces_a_majority_below_what_is_within_reach(nodes: int, mode: Mode) -> None:
    names = [ME, *(NodeName(f"n{number}") for number in range(1, nodes))]
    for count in range(1, nodes + 1):
        question = Question(ME, frozenset(names), frozenset(names[:count]), mode, Word.NO_VOTING)
        for told in product(Told, repeat=nodes - 1):
            others = dict(zip(names[1:], told, strict=True))
            states = {name: t.value for name, t in others.items() if isinstance(t.value, Stamp)}
            deaf = {name: t.value for name, t in others.items() if isinstance(t.value, Deaf)}
            verdict = decide(
                question,
                {n: Ballot(master=ME, epoch=Epoch(3), stamp=s) for n, s in states.items()}
                | {ME: Ballot(master=ME, epoch=Epoch(3), stamp=stamp(2))},
                silent=others.keys() - states.keys(),
                heard=Heard(deaf=deaf),
            )
            if isinstance(verdict, Won) and verdict.overridden:
                assert not deaf, told
                assert all(each.age <= verdict.stamp.age for each in states.values()), told
            elif len(states) < nodes // 2 and not deaf and stamp(3) not in states.values():
                assert isinstance(verdict, Won), (told, verdict)
