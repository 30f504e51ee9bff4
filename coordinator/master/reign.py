"""Stay master for as long as the nodes confirm it.

That a node refuses an order, or has granted a later epoch, is a doubt and no verdict: somebody may
have tried to take over and failed, and then this is the only master there is. So the nodes are
asked, as after any other start. Whoever was replaced is refused at once, by those who name the
other; whoever was not goes on in a higher epoch, which the doubting nodes obey, too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from common.errors import Deposed
from common.names import Epoch, NodeName
from coordinator.master.confirm import NoQuorum, NotMaster
from coordinator.master.master import Master
from coordinator.quorum.question import NO_EPOCH, Mode, Word

log = logging.getLogger(__name__)

SHORT_S = PAUSE_S = 1.0  # after two short reigns, so that a quarrel without end costs little

Confirm = Callable[[Mode, Word, Epoch], Awaitable[Master]]
Serve = Callable[[Master], Awaitable[None]]


async def reign(
    me: NodeName, confirm: Confirm, serve: Serve, mode: Mode, word: Word = Word.NONE
) -> None:
    """Be master until ``serve`` returns, or until another node is.

    Args:
        me: this node.
        confirm: asks the nodes, for an epoch above one that was heard of.
        serve: does a master's work; raises Deposed when in doubt, alone or in a group.
        mode: why this node wants to be master at first; later it believes that it is.
        word: what the operator vouches for, at first.

    Raises:
        NotMaster: it did not become master, and why.
        Deposed: another coordinator is master now.
    """
    loop = asyncio.get_running_loop()
    master = await confirm(mode, word, NO_EPOCH)
    short = 0
    while True:
        began_s = loop.time()
        doubts: list[Deposed] = []
        try:
            await serve(master)
        except* Deposed as group:
            doubts = _leaves(group)
        if not doubts:
            return
        if any(doubt.detail.get("master") == me for doubt in doubts):
            raise doubts[0]  # another coordinator of this very node; the later one stays
        log.warning("in doubt whether this is the master, so all nodes are asked: %s", doubts[0])
        short = short + 1 if loop.time() - began_s < SHORT_S else 0
        if short > 1:
            await asyncio.sleep(PAUSE_S)
        master = await _again(confirm, doubts[0])


async def _again(confirm: Confirm, doubt: Deposed) -> Master:
    """Have the nodes confirm a master who is in doubt.

    Raises:
        Deposed: they name another.
        NoQuorum: too few answer.
    """
    claim = doubt.detail.get("epoch")
    above = Epoch(claim) if isinstance(claim, int) else NO_EPOCH
    try:
        return await confirm(Mode.START, Word.NONE, above)
    except NoQuorum:
        raise
    except NotMaster as error:
        raise Deposed(error.message, **doubt.detail) from error


def _leaves(group: BaseExceptionGroup[Deposed]) -> list[Deposed]:
    found: list[Deposed] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
