"""Become master: ask the nodes, get an epoch granted, and have the newest state.

The decisions are in ``coordinator.quorum``; this asks, waits, and fetches.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from common.errors import Conflict, Deposed, GntError, Unreachable
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot, Mastership
from common.noderpc.replica import Replica
from coordinator.nodes.calls import Nodes
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.objection import (
    LocalSilent,
    NamedOther,
    NoCandidateMajority,
    NoMajority,
    Objection,
    Overtaken,
)
from coordinator.quorum.question import Mode, Question, Word
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won
from coordinator.state.loading import Loaded, load

log = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE_S = (0.3, 2.0, 5.0)  # for silent nodes, in the first rounds and in all later ones
START_LIMIT_S = 60.0  # nodes come up slowly after a power cut (M38)
TAKE_OVER_LIMIT_S = 10.0  # somebody is waiting

Judge = Callable[[Mapping[NodeName, Ballot], Collection[NodeName]], Verdict]


class NotMaster(Conflict):
    """This node is not, and does not become, the master; the message says why."""

    code = "conflict.not-master"
    exit_code = 11


class NoQuorum(NotMaster):
    """Too few nodes answered, or another grant came between; a later attempt may succeed."""

    code = "conflict.not-master.no-quorum"
    exit_code = Unreachable.exit_code  # unlike 11, it has systemd try again


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a new master begins with."""

    won: Won
    loaded: Loaded
    unheard: tuple[NodeName, ...]  # nodes that did not grant the epoch


async def become_master(
    me: NodeName, loaded: Loaded, nodes: Nodes, mode: Mode, word: Word = Word.NONE
) -> Confirmed:
    """Win an epoch and the newest state.

    Args:
        me: this node.
        loaded: the state of this node's replica.
        nodes: calls without an epoch.
        mode: why.
        word: what the operator vouches for.

    Raises:
        NotMaster: it is refused, and why.
    """
    loop = asyncio.get_running_loop()
    limit_s = START_LIMIT_S if mode is Mode.START else TAKE_OVER_LIMIT_S
    deadline = loop.time() + limit_s
    attempt, told = 0, ""
    while True:
        patience_s = PATIENCE_S[min(attempt, len(PATIENCE_S) - 1)]
        attempt += 1
        asked = _Asked(me, loaded, nodes, mode, word, patience_s)
        verdict = await asked.verdict()
        if isinstance(verdict, Won):
            newest = loaded
            # It may be our own replica: the master before stored commits until it was deposed.
            if verdict.stamp != loaded.state.stamp:
                log.info("fetching the state from %s, which is newer", verdict.newest)
                newest = await load(asked.call(Replica, verdict.newest))
            if _lists(newest) == _lists(loaded):
                return Confirmed(verdict, newest, asked.unheard)
            loaded = newest  # other nodes have a say now
            continue
        assert isinstance(verdict, Refused)
        may_pass = _may_pass(verdict.objection)
        if not may_pass or loop.time() > deadline:
            refusal = NoQuorum if may_pass else NotMaster
            raise refusal(f"This node does not become master: {verdict.reason}")
        if verdict.reason != told:
            log.warning("not master yet: %s", told := verdict.reason)
        await asyncio.sleep(min(1.0, patience_s))


class _Asked:
    """One round: ballots, grants, and ballots again."""

    def __init__(
        self, me: NodeName, loaded: Loaded, nodes: Nodes, mode: Mode, word: Word, patience_s: float
    ) -> None:
        config = loaded.state.config
        # Offline ones are asked as well: they may be back, with newer data (M42).
        self._voters = {n.name: replace(n, offline=False) for n in config.sorted_nodes()}
        self._question = Question(
            me=me, voters=frozenset(self._voters),
            candidates=frozenset(node.name for node in config.candidates()),
            mode=mode, word=word,
        )  # fmt: skip
        self._nodes, self._patience_s = nodes, patience_s
        self._silent: set[NodeName] = set()
        self.unheard: tuple[NodeName, ...] = ()

    def call(self, kind: type[T], name: NodeName) -> T:
        return self._nodes.service(kind, self._voters[name])  # type: ignore[type-var]

    async def verdict(self) -> Verdict:
        question = self._question
        first = await self._poll(
            lambda node: self.call(Mastership, node).vote(),
            lambda ballots, silent: decide(question, ballots, silent=silent),
        )
        if not isinstance(first, Won):
            return first
        # Whoever was silent is asked for the epoch as well, but not waited for once more.
        return await self._poll(
            lambda node: self._grant(node, first.epoch),
            lambda ballots, silent: confirm(question, first.epoch, ballots, silent=silent),
        )

    async def _grant(self, node: NodeName, epoch: Epoch) -> Ballot:
        """Ask for the epoch; the ballot taken afterwards shows whether it was granted."""
        mastership = self.call(Mastership, node)
        try:
            await mastership.grant(
                epoch=epoch, master=self._question.me, only_if_named=self._question.only_if_named
            )
        except Deposed as error:
            log.info("%s does not grant epoch %s: %s", node, epoch, error)
        return await mastership.vote()

    async def _poll(self, ask: Callable[[NodeName], Awaitable[Ballot]], judge: Judge) -> Verdict:
        """Ask everybody at once, until the answers so far decide or patience is over."""
        ballots: dict[NodeName, Ballot] = {}
        silent = self._silent
        waiting = {asyncio.ensure_future(ask(node)): node for node in self._voters}
        limit = asyncio.timeout(self._patience_s)
        me, verdict = self._question.me, judge(ballots, silent)
        try:
            async with limit:
                # The own answer comes at once; without it the count in a refusal would be odd.
                while waiting and (isinstance(verdict, Wait) or me in waiting.values()):
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        node = waiting.pop(task)
                        error = task.exception()
                        if error is None:
                            ballots[node] = task.result()
                            silent.discard(node)
                        elif isinstance(error, GntError):
                            silent.add(node)
                            log.info("%s has no say: %s", node, error)
                        else:
                            raise error
                    verdict = judge(ballots, silent)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            for task in waiting:
                task.cancel()
        self.unheard = tuple(sorted(self._voters.keys() - ballots.keys()))
        if isinstance(verdict, Wait):  # else whoever was not waited for is not silent for that
            silent.update(waiting.values())
            verdict = judge(ballots, silent)
        return verdict


def _may_pass(objection: Objection) -> bool:
    """Tell whether those who did not answer, or did so too late, may yet decide otherwise."""
    if isinstance(objection, NamedOther):
        return len(objection.by) <= objection.voters // 2
    return isinstance(objection, NoMajority | NoCandidateMajority | Overtaken | LocalSilent)


def _lists(loaded: Loaded) -> tuple[frozenset[str], frozenset[str]]:
    config = loaded.state.config
    return (
        frozenset(node.name for node in config.nodes.values()),
        frozenset(node.name for node in config.candidates()),
    )
