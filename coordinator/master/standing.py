"""Answer only as long as nobody else can be master.

A process that was stopped for an hour, or a machine that was suspended, goes on as if nothing had
been, and must not answer from what it knew then. While all is well this costs nothing: followers
give orders to the candidates every few seconds, and what they last heard is recent. If it is not,
all nodes are asked before an answer is given. If too few of them answer, this node goes on showing
what it knows, as a master without a majority does.
"""

import asyncio
import logging
from collections.abc import Callable

from common.errors import Deposed, NotListed, Unreachable
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot, Mastership
from coordinator.master.electorate import Electorate
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.quorum.standing import Standing, judge_standing, named_most
from coordinator.state.store import Store

log = logging.getLogger(__name__)

FRESH_S = 15.0  # three times as long as followers are idle
PATIENCE_S = 2.0  # for nodes that do not answer


class Watchfulness:
    """Knows how long ago this node was certainly master.

    Args:
        me: this node.
        epoch: of its mastership.
        store: has the followers.
        nodes: calls without an epoch.
        now: seconds since 1970. They pass on a machine that is suspended, whose other clocks
            may not.
        doubt: called when most nodes have granted a later epoch.
    """

    def __init__(
        self,
        me: NodeName,
        epoch: Epoch,
        store: Store,
        nodes: Nodes,
        *,
        now: Callable[[], float],
        doubt: Callable[[Deposed], None],
    ) -> None:
        self._me, self._epoch, self._store, self._nodes = me, epoch, store, nodes
        self._now, self._doubt = now, doubt
        self._asked_s = asyncio.get_running_loop().time()  # when last, whatever came of it
        self._offset_s = self._offset()
        self._asking = asyncio.Lock()

    async def check(self) -> None:
        """Return at once if this node was confirmed lately; else ask first.

        Raises:
            Deposed: most nodes have granted a later epoch.
        """
        if self._is_fresh():
            return
        async with self._asking:
            if not self._is_fresh():
                await self._ask()

    def _is_fresh(self) -> bool:
        if abs(self._offset() - self._offset_s) > FRESH_S:
            return False  # one of the clocks stood still, or somebody set one
        known_s = max(self._asked_s, self._store.obeyed_s or 0.0)
        return asyncio.get_running_loop().time() - known_s < FRESH_S

    def _offset(self) -> float:
        return self._now() - asyncio.get_running_loop().time()

    async def _ask(self) -> None:
        began_s, offset_s = asyncio.get_running_loop().time(), self._offset()
        electorate = Electorate.of(self._store.state.config.nodes.values())
        answers = await each({name: self._vote(electorate, name) for name in electorate.voters})
        ballots = {name: told for name, told in answers.items() if isinstance(told, Ballot)}
        deaf = {name for name, told in answers.items() if isinstance(told, NotListed)}
        standing = judge_standing(
            self._me, self._epoch, ballots, electorate.names, electorate.candidates, deaf=deaf
        )
        log.info("asked %s nodes whether this is the master: %s", len(answers), standing.value)
        if standing is Standing.IN_DOUBT:
            master = named_most(tuple(ballots.values()), self._epoch)
            newest = max((ballot.epoch for ballot in ballots.values()), default=self._epoch)
            told = f" {next(answers[name] for name in sorted(deaf))}" if deaf else ""
            error = Deposed(
                f"{self._me} is not the master any more: most nodes have granted "
                f"{master or 'another'} a later epoch than {self._epoch}.{told}",
                epoch=newest,
                master=master,
            )
            self._doubt(error)
            raise error
        self._asked_s, self._offset_s = began_s, offset_s

    async def _vote(self, electorate: Electorate, name: NodeName) -> Ballot:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._nodes.service(Mastership, electorate.voters[name]).vote()
        except TimeoutError as error:
            raise Unreachable(f"{name} does not say who is master.", node=name) from error
