"""Become master: ask the nodes, get an epoch granted, and have the newest state.

The decisions are in ``coordinator.quorum``; this asks, waits, and fetches.
"""

import asyncio
import logging
from dataclasses import dataclass

from common.errors import Conflict, GntError, Unreachable
from common.names import Epoch, NodeName
from common.noderpc.replica import Replica
from coordinator.master.asking import Asked
from coordinator.master.electorate import Electorate
from coordinator.nodes.calls import Nodes
from coordinator.quorum.heard import Heard
from coordinator.quorum.objection import (
    LocalSilent,
    NamedOther,
    NoCandidateMajority,
    NoMajority,
    Objection,
    Overtaken,
    TakingOver,
    Vanished,
)
from coordinator.quorum.question import NO_EPOCH, Mode, Question, Word
from coordinator.quorum.verdict import Refused, Won
from coordinator.state.loading import Loaded, load, load_nodes

log = logging.getLogger(__name__)

PATIENCE_S = (0.3, 2.0, 5.0)  # for silent nodes, in the first rounds and in all later ones
START_LIMIT_S = 60.0  # nodes come up slowly after a power cut
TAKE_OVER_LIMIT_S = 10.0  # somebody is waiting
WORD_S = 5.0  # the operator's word replaces only what cannot be had in this time
YIELD_LOOK_S = 0.2
YIELD_S = 15.0  # a plain start leaves a take-over so long to end, more than one can need


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
    me: NodeName,
    loaded: Loaded,
    nodes: Nodes,
    mode: Mode,
    word: Word = Word.NONE,
    *,
    above: Epoch = NO_EPOCH,
) -> Confirmed:
    """Win an epoch and the newest state.

    Args:
        me: this node.
        loaded: the state of this node's replica.
        nodes: calls without an epoch.
        mode: why.
        word: what the operator vouches for.
        above: an epoch that has been granted to another, as one node says.

    Raises:
        NotMaster: it is refused, and why.
    """
    return await _Campaign(me, loaded, nodes, mode, word, above).win()


class _Campaign:
    """Rounds of questions, until one of them decides.

    A node that showed a newer state than it can give is set aside for good: a liar must not keep
    everybody from a master. What it showed is remembered, and no word of the operator's goes
    below it unasked.
    """

    def __init__(
        self,
        me: NodeName,
        loaded: Loaded,
        nodes: Nodes,
        mode: Mode,
        word: Word,
        above: Epoch,
    ) -> None:
        self._me, self._loaded, self._nodes, self._mode, self._word = me, loaded, nodes, mode, word
        self._above = above
        self._electorate = Electorate.of(loaded.state.config.nodes.values())
        self._heard = Heard()
        self._unread: dict[NodeName, GntError] = {}  # showed a state that was not to be had; why
        self._began = asyncio.get_running_loop().time()
        plain = mode is Mode.START and word is Word.NONE
        self._limit_s = START_LIMIT_S if plain else TAKE_OVER_LIMIT_S

    async def win(self) -> Confirmed:
        attempt, told = 0, ""
        while True:
            patience_s = PATIENCE_S[min(attempt, len(PATIENCE_S) - 1)]
            attempt += 1
            if self._word is not Word.NONE:
                patience_s = PATIENCE_S[-1]  # what is within reach must not be overridden
            objection = await self._round(patience_s)
            if isinstance(objection, Confirmed):
                return objection
            if objection is None:
                continue  # with other lists of nodes
            may_pass = _may_pass(objection) or self._may_hear_more
            if not may_pass or self._past_s > self._limit_s:
                refusal = NoQuorum if may_pass else NotMaster
                raise refusal(f"This node does not become master: {objection}{self._in_the_way}")
            if str(objection) != told:
                log.warning("not master yet: %s", told := str(objection))
            soon = isinstance(objection, TakingOver)  # or not at all
            await asyncio.sleep(YIELD_LOOK_S if soon else min(1.0, patience_s))

    @property
    def _past_s(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    @property
    def _in_the_way(self) -> str:
        """Why nodes were set aside, if any were: it may be what an operator has to mend."""
        return "".join(
            f" {node} shows a newer state, and it was not to be had: {error}"
            for node, error in self._unread.items()
        )

    @property
    def _may_hear_more(self) -> bool:
        """Whether it is too early for the operator's word: it is for what cannot be had."""
        return self._word is not Word.NONE and self._past_s < WORD_S

    async def _round(self, patience_s: float) -> Confirmed | Objection | None:
        """Ask everybody; None says that others than were asked have a say."""
        asked = Asked(
            self._question(), self._electorate, self._nodes, patience_s, self._unread, self._heard
        )
        first = await asked.for_ballots()
        if isinstance(first, Refused):
            return first.objection
        if first.overridden and self._may_hear_more:
            return first.overridden[0]
        # Before a grant, which deposes whoever is master now: one who is no candidate any more, or
        # does not know all who have a say, has to learn that first.
        if not await self._is_the_electorate_of(first, asked):
            return None
        verdict = await asked.for_grants(first.epoch)
        if isinstance(verdict, Refused):
            return verdict.objection
        if not await self._has_newest(verdict, asked):
            return None
        return Confirmed(verdict, self._loaded, asked.unheard)

    def _question(self) -> Question:
        return Question(
            me=self._me,
            voters=frozenset(self._electorate.voters),
            candidates=self._electorate.candidates,
            mode=self._mode,
            word=self._word,
            above=self._above,
            yields=self._past_s < YIELD_S,
        )

    async def _is_the_electorate_of(self, won: Won, asked: Asked) -> bool:
        """Look whether the newest state has the nodes that were asked; if not, take its."""
        if won.stamp == self._loaded.state.stamp:
            newest = Electorate.of(self._loaded.state.config.nodes.values())
        else:
            try:
                newest = Electorate.of(await load_nodes(asked.call(Replica, won.newest)))
            except GntError as error:
                return self._set_aside(won.newest, error)
        if newest == self._electorate:
            return True
        log.info("the newest state, of %s, has other lists of nodes", won.newest)
        self._electorate = newest
        return False

    async def _has_newest(self, won: Won, asked: Asked) -> bool:
        """Fetch the newest state if it is not here; tell whether those whom it names were asked."""
        # It may be our own replica: the master before stored commits until it was deposed.
        if won.stamp != self._loaded.state.stamp:
            log.info("fetching the state from %s, which is newer", won.newest)
            try:
                self._loaded = await load(asked.call(Replica, won.newest))
            except GntError as error:
                return self._set_aside(won.newest, error)
        newest = Electorate.of(self._loaded.state.config.nodes.values())
        was_asked, self._electorate = newest == self._electorate, newest
        return was_asked

    def _set_aside(self, node: NodeName, error: GntError) -> bool:
        if node == self._me:
            raise error
        log.warning("%s shows a newer state and does not give it: %s", node, error)
        self._unread[node] = error
        return False


def _may_pass(objection: Objection) -> bool:
    """Tell whether those who did not answer, or did so too late, may yet decide otherwise."""
    if isinstance(objection, NamedOther):
        return len(objection.by) <= objection.voters // 2
    return isinstance(
        objection,
        NoMajority | NoCandidateMajority | Overtaken | LocalSilent | TakingOver | Vanished,
    )
