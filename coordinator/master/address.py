"""Have the address that goes with the mastership on the master, and on no other node.

The master's own node is given it for seconds only, again and again, and only while nobody else can
have become master. A new master tells the others to let go of it; if one of them does not say that
it has, it waits until whatever that node may have been told is over.
"""

import asyncio
import logging
from contextlib import suppress

from common.errors import GntError
from common.model.master_address import MasterAddress, wanted_address
from common.names import NodeName
from common.noderpc.master_address import HOLD_S, MasterAddresses
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.state.store import Store

BEAT_S = 5.0
LIFETIME_S = 20  # four chances to have it renewed
CERTAIN_S = 10.0  # for how long it counts that nobody else was master; twice what is usual
WAIT_S = CERTAIN_S + HOLD_S + LIFETIME_S + 5.0  # with time for clocks that run apart

log = logging.getLogger(__name__)


class AddressKeeper:
    """Works for one reign; begins when the reign has been made durable."""

    def __init__(self, me: NodeName, store: Store, nodes: Nodes) -> None:
        self._me, self._store, self._nodes = me, store, nodes
        self._began_s = asyncio.get_running_loop().time()
        self._given: MasterAddress | None = None  # what this node was told to have
        self._cleared = ""  # the address of which the others were told to let go
        self._problem = ""

    async def run(self) -> None:
        """Keep it as it is configured, until cancelled."""
        while True:
            cluster = self._store.state.config.cluster
            wanted = wanted_address(cluster)
            try:
                await self._have(wanted)
            except GntError as error:
                self._tell(error.message)
            else:
                self._tell("")
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S if wanted or self._given else None):
                    while self._store.state.config.cluster is cluster:
                        await self._store.changed(self._store.state)

    async def _have(self, wanted: MasterAddress | None) -> None:
        own = self._nodes.service(MasterAddresses, self._store.state.config.node(self._me))
        if self._given is not None and (wanted is None or self._given.ip != wanted.ip):
            await own.let_go(ip=self._given.ip)
            self._given = None
        if wanted is None:
            return
        if self._cleared != wanted.ip:
            await self._clear(wanted.ip)
            self._cleared = wanted.ip
        obeyed_s = self._store.obeyed_s
        if obeyed_s is None or asyncio.get_running_loop().time() - obeyed_s > CERTAIN_S:
            self._tell("it is not certain that no other node is the master")
            return
        self._given = wanted  # before the answer, which may be lost
        await own.hold(address=wanted, for_s=LIFETIME_S)

    async def _clear(self, ip: str) -> None:
        """Return when no other node has the address, or can have it any more."""
        config = self._store.state.config
        others = [n for n in config.sorted_nodes() if n.name != self._me and not n.offline]
        told = await each(
            {n.name: self._nodes.service(MasterAddresses, n).let_go(ip=ip) for n in others}
        )
        silent = [name for name, outcome in told.items() if isinstance(outcome, GntError)]
        left_s = self._began_s + WAIT_S - asyncio.get_running_loop().time()
        if silent and left_s > 0:
            log.info(
                "%s may still have the master's address %s; it is taken in %.0f s",
                ", ".join(silent), ip, left_s,
            )  # fmt: skip
            await asyncio.sleep(left_s)

    def _tell(self, problem: str) -> None:
        """Log a problem once, and again when it is another one."""
        if problem and problem != self._problem:
            log.warning("the address of the master is not renewed: %s", problem)
        self._problem = problem
