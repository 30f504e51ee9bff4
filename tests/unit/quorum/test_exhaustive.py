"""Every combination of answers in clusters of up to five nodes."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product

import pytest

from common.model.stamp import Stamp
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.objection import NotCandidate, Objection
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won
from tests.unit.quorum.cases import (
    ME,
    RIVAL,
    UP_TO,
    Case,
    Says,
    all_cases,
    cases,
    expected,
    stamp,
    twin_states,
    verdicts_on,
)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("nodes", range(1, UP_TO + 1))
def test_every_case(nodes: int, mode: Mode) -> None:
    for case in cases(nodes, mode):
        verdicts = verdicts_on(case, mode)
        if Says.NOTHING_YET in case.all:
            later = {each.first for each in case.with_one_more_answer(mode)}
            afterwards = zip(*(verdicts_on(each, mode) for each in later), strict=True)
            for word, verdict, then in zip(Word, verdicts, afterwards, strict=True):
                check_with_pending(case, word, verdict, then)
        else:
            for word, verdict in zip(Word, verdicts, strict=True):
                assert not isinstance(verdict, Wait), case
                state = verdict.stamp if isinstance(verdict, Won) else None
                assert state == expected(case, mode, word), case
        without_a_word, *_ = verdicts
        assert not isinstance(without_a_word, Won) or not without_a_word.overridden, case


@pytest.mark.parametrize("mode", Mode)
def test_which_states_they_are_does_not_matter(mode: Mode) -> None:
    """Only which is newer, and which are the same: that is why twins are decided once."""
    for nodes in range(1, 4):
        for case in all_cases(nodes, mode):
            twins = twin_states(case.by_candidates)
            pairs = zip(verdicts_on(case, mode), verdicts_on(case.twin, mode), strict=True)
            for verdict, twin in pairs:
                assert type(verdict) is type(twin), case
                if isinstance(verdict, Won) and isinstance(twin, Won):
                    assert twin.stamp == twins.get(verdict.stamp, verdict.stamp), case
                    assert _kinds(twin.overridden) == _kinds(verdict.overridden), case
                if isinstance(verdict, Refused) and isinstance(twin, Refused):
                    assert type(verdict.objection) is type(twin.objection), case


def _kinds(objections: Iterable[Objection]) -> list[type]:
    return [type(each) for each in objections]


@pytest.mark.parametrize("mode", Mode)
def test_of_twins_one_is_decided(mode: Mode) -> None:
    decided = [*cases(3, mode)]
    assert len({*decided}) == len(decided)
    assert {case.first for case in all_cases(3, mode)} == {*decided}
    assert all(case.twin.first == case.first for case in all_cases(3, mode))


def check_with_pending(case: Case, word: Word, verdict: Verdict, later: Sequence[Verdict]) -> None:
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
    """Of candidates it matters what they hold, and whether they answer; of others how many do."""
    names = tuple(NodeName(f"n{number}") for number in range(nodes))
    for number in range(1, nodes + 1):
        question = Question(names[0], frozenset(names), frozenset(names[:number]), mode)
        all_do = tuple(product(Holds, (True, False)))
        theirs = combinations_with_replacement(all_do, number - 1)
        for mine, rest, strangers in product(all_do, theirs, range(nodes - number + 1)):
            done = (mine, *rest)
            if 2 * sum(held in (Holds.IT, Holds.ONE_MORE) for held, _ in done) <= number:
                continue  # not acknowledged
            answers = [held.value for held, answers in done if answers] + [None] * strangers
            answering = [name for name, (_, answers) in zip(names, done, strict=False) if answers]
            answering += names[number : number + strangers]
            ballots = {
                name: Ballot(master=names[0], epoch=Epoch(3), stamp=state)
                for name, state in zip(answering, answers, strict=True)
            }
            verdict = decide(question, ballots, silent=set(names))
            if isinstance(verdict, Won):
                assert verdict.stamp.serial >= 2, (done, answering)


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
