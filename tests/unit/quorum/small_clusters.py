"""Clusters of a few nodes: what each says, and what is asked of them."""

from collections.abc import Iterable

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName, Serial
from common.noderpc.mastership import Ballot
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict

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
