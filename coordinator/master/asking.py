"""One round of becoming master: everybody's ballot, and then everybody's grant."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from common.errors import Deposed, GntError, NotListed
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot, Mastership
from coordinator.master.electorate import Electorate
from coordinator.nodes.calls import Nodes
from coordinator.quorum.astray import sort_out
from coordinator.quorum.decide import confirm, decide
from coordinator.quorum.heard import Deaf, Heard
from coordinator.quorum.poll import Poll
from coordinator.quorum.question import Question
from coordinator.quorum.verdict import Refused, Verdict, Wait, Won

log = logging.getLogger(__name__)
T = TypeVar("T")

Judge = Callable[[Mapping[NodeName, Ballot], Collection[NodeName]], Verdict]


class Asked:
    """Calls everybody, and has the answers judged as they come.

    Args:
        question: what is asked.
        electorate: who is asked.
        nodes: calls without an epoch.
        patience_s: for those who do not answer.
        unread: nodes whose answers do not count.
        heard: what nodes told in earlier rounds; is brought up to date.
    """

    def __init__(
        self,
        question: Question,
        electorate: Electorate,
        nodes: Nodes,
        patience_s: float,
        unread: Collection[NodeName],
        heard: Heard,
    ) -> None:
        self._question, self._voters = question, electorate.voters
        self._nodes, self._patience_s, self._unread = nodes, patience_s, unread
        self._heard = heard
        self._silent: set[NodeName] = set()
        self._name_others: frozenset[NodeName] = frozenset()
        self.unheard: tuple[NodeName, ...] = ()

    def call(self, kind: type[T], name: NodeName) -> T:
        return self._nodes.service(kind, self._voters[name])  # type: ignore[type-var]

    async def for_ballots(self) -> Won | Refused:
        """Ask who is master."""
        ballots: dict[NodeName, Ballot] = {}
        verdict = await self._poll(
            lambda node: self.call(Mastership, node).vote(),
            lambda answers, silent: decide(
                self._question, answers, silent=silent, heard=self._heard
            ),
            ballots,
        )
        self._heard.shows(Poll.of(self._question, ballots, (), self._heard).shown)
        me = self._question.me
        self._name_others = frozenset(
            node for node, ballot in ballots.items() if me not in (ballot.master, ballot.holder)
        )
        for told in sort_out(ballots, self._question.candidates)[1]:
            log.warning("%s", told)
        return verdict

    async def for_grants(self, epoch: Epoch) -> Won | Refused:
        """Ask for the epoch; whoever was silent is asked as well, but not waited for again."""
        return await self._poll(
            lambda node: self._grant(node, epoch),
            lambda answers, silent: confirm(
                self._question, epoch, answers, silent=silent, heard=self._heard
            ),
            {},
        )

    async def _grant(self, node: NodeName, epoch: Epoch) -> Ballot:
        """Ask for the epoch; the ballot taken afterwards shows whether it was granted."""
        mastership = self.call(Mastership, node)
        only_if_named = self._question.only_if_named and node not in self._name_others
        try:
            await mastership.grant(
                epoch=epoch, master=self._question.me, only_if_named=only_if_named
            )
        except Deposed as error:
            log.info("%s does not grant epoch %s: %s", node, epoch, error)
        return await mastership.vote()

    async def _poll(
        self,
        ask: Callable[[NodeName], Awaitable[Ballot]],
        judge: Judge,
        ballots: dict[NodeName, Ballot],
    ) -> Won | Refused:
        """Ask everybody at once, until the answers so far decide or patience is over."""
        silent = self._silent
        silent.update(self._unread)
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
                            self._heard.listens(node)
                        if error is None and node not in self._unread:
                            ballots[node] = task.result()
                            silent.discard(node)
                        elif error is None:
                            log.info("the answer of %s does not count", node)
                        elif isinstance(error, GntError):
                            silent.add(node)
                            if isinstance(error, NotListed):
                                self._heard.refuses(node, _deaf(error))
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
        assert not isinstance(verdict, Wait), "there is nobody left to wait for"
        return verdict


def _deaf(error: NotListed) -> Deaf:
    """Read what a node told of its roster, which may be anything."""
    names = error.detail.get("listed")
    listed = tuple(NodeName(str(name)) for name in names) if isinstance(names, list) else ()
    match error.detail.get("age"):
        case [int(epoch), int(serial)]:
            return Deaf(listed, (epoch, serial))
        case _:
            return Deaf(listed)
