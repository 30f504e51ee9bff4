"""What each node of a small cluster can say, and the cases that differ for the rules.

The nodes besides ``me`` are interchangeable, so a case is what I say, what the other
candidates say and what the other nodes say, the latter two as multisets. Of states only the order
of their ages matters, and which are the same: of cases that do not differ in that, the first is
decided for all.
"""

import enum
from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from common.model.stamp import Stamp
from common.names import Epoch, NodeName, Serial
from common.noderpc.mastership import Ballot
from coordinator.quorum.decide import decide
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Verdict

UP_TO = 5  # nodes
ME, RIVAL = NodeName("me"), NodeName("rival")
NAMES = (ME, *(NodeName(f"n{number}") for number in range(1, UP_TO)))


def stamp(serial: int, digest: str = "") -> Stamp:
    return Stamp(epoch=Epoch(3), serial=Serial(serial), digest=digest or str(serial))


OLD, NEW, TWISTED, NEWEST = stamp(1), stamp(2), stamp(2, "twisted"), stamp(3)


class Says(enum.Enum):
    """All that a node can do, as far as the rules tell one answer from another."""

    NOTHING_YET = ("pending",)
    NOTHING = ("silent",)
    ME_WITHOUT_STATE = ("answers", ME, None)
    ME_OLD = ("answers", ME, OLD)
    ME_NEW = ("answers", ME, NEW)
    ME_TWISTED = ("answers", ME, TWISTED)
    ME_NEWEST = ("answers", ME, NEWEST)
    RIVAL_WITHOUT_STATE = ("answers", RIVAL, None)
    RIVAL_OLD = ("answers", RIVAL, OLD)
    RIVAL_NEW = ("answers", RIVAL, NEW)
    RIVAL_TWISTED = ("answers", RIVAL, TWISTED)
    RIVAL_NEWEST = ("answers", RIVAL, NEWEST)

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


@cache
def twin_states(said: frozenset[Says]) -> dict[Stamp, Stamp]:
    """Return which states could as well have been said instead.

    Two of the same age are exchanged; where there are no such, the oldest come first.
    """
    states = sorted({says.state for says in said if says.state}, key=lambda state: state.age)
    if {NEW, TWISTED} <= {*states}:
        return {NEW: TWISTED, TWISTED: NEW}
    return dict(zip(states, (OLD, NEW, NEWEST), strict=False))


@cache
def _twins(said: frozenset[Says]) -> dict[Says, Says]:
    states = twin_states(said)
    return {
        says: twin
        for says, twin in product(said, Says)
        if says.state in states
        and (twin.names_me, twin.state) == (says.names_me, states[says.state])
        and twin != says
    }


class Case(NamedTuple):
    mine: Says
    candidates: tuple[Says, ...]  # of the others, in the order of Says
    others: tuple[Says, ...]  # without a state

    @property
    def all(self) -> tuple[Says, ...]:
        return (self.mine, *self.candidates, *self.others)

    @property
    def by_candidates(self) -> frozenset[Says]:
        return frozenset((self.mine, *self.candidates))

    @property
    def twin(self) -> "Case":
        """Return the case with other states of which the same is true, or this one."""
        twins = _twins(self.by_candidates)
        if not twins:
            return self
        mine, *theirs = (twins.get(says, says) for says in (self.mine, *self.candidates))
        return Case(mine, _in_order(*theirs), self.others)

    @property
    def first(self) -> "Case":
        """Return of this and its twin the one that is decided for both."""
        twin = self.twin
        if twin is self:
            return self
        return min(self, twin, key=lambda case: [ORDER[says] for says in case.all])

    def with_one_more_answer(self, mode: Mode) -> Iterator["Case"]:
        pending, *answers = alphabet(mode, candidate=True)
        if self.mine is pending:
            yield from (Case(says, self.candidates, self.others) for says in answers)
        if pending in self.candidates:  # it is their first
            for says in answers:
                yield Case(self.mine, _in_order(*self.candidates[1:], says), self.others)
        if pending in self.others:
            for says in alphabet(mode, candidate=False)[1:]:
                yield Case(self.mine, self.candidates, _in_order(*self.others[1:], says))


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
def verdicts_on(case: Case, mode: Mode) -> tuple[Verdict, ...]:
    """Return one for each word."""
    said = case.all
    ballots = {name: says.ballot for name, says in zip(NAMES, said, strict=False) if says.ballot}
    silent = [name for name, says in zip(NAMES, said, strict=False) if says is Says.NOTHING]
    asked = _questions(len(said), 1 + len(case.candidates), mode)
    return tuple(decide(each, ballots, silent=silent) for each in asked)


@cache
def _questions(nodes: int, candidates: int, mode: Mode) -> tuple[Question, ...]:
    voters, some = frozenset(NAMES[:nodes]), frozenset(NAMES[:candidates])
    return tuple(Question(ME, voters, some, mode, word) for word in Word)


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
