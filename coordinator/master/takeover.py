"""Move the mastership to this node: what ``gnt-cluster master-failover`` does first.

It ends with a commit of the new epoch, by which this node is the master for good; the
coordinator is then started as on any other day.
"""

import asyncio
import time
from random import SystemRandom

from common.errors import Conflict
from common.messages import Report
from common.model.node import Node
from common.names import Epoch, NodeName
from common.noderpc.mastership import Mastership
from common.paths import Paths
from coordinator.master.local import calling, this_node
from coordinator.master.luxi_server import LuxiServer
from coordinator.master.master import Master, Outside
from coordinator.nodes.calls import Nodes
from coordinator.nodes.stranger import stranger
from coordinator.quorum.question import Mode, Word

ENDING_S, ENDING_LOOK_S = 5.0, 0.1  # of a coordinator that hears that it was replaced


class TakenOver(Report):
    master: NodeName
    epoch: Epoch
    unheard: tuple[NodeName, ...]  # nodes that did not answer
    overridden: tuple[str, ...]  # what the operator's word set aside


async def take_over(paths: Paths, port: int, word: Word = Word.NONE) -> TakenOver:
    """Become master in place of another node.

    Raises:
        NotMaster: the nodes do not agree, and why.
        Conflict: this node is the master already, and its coordinator runs.
        Unreachable: noded does not run here.
    """
    server = LuxiServer(paths.luxi_socket)
    me = this_node(paths, port)
    async with calling(paths) as nodes:
        await _until_free(server, me, nodes)
        outside = Outside(nodes, stranger, time.time, SystemRandom(), paths.luxi_socket.parent)
        master = await Master.confirm(me, outside, Mode.TAKE_OVER, word)
        await master.take_over()
    won = master.confirmed.won
    return TakenOver(
        master=me.name,
        epoch=won.epoch,
        unheard=master.confirmed.unheard,
        overridden=tuple(str(objection) for objection in won.overridden),
    )


async def _until_free(server: LuxiServer, me: Node, nodes: Nodes) -> None:
    """Let the coordinator of this node end if another node has just been made the master.

    Raises:
        Conflict: it does not, or is the master's.
        Unreachable: noded does not run here.
    """
    loop = asyncio.get_running_loop()
    limit = loop.time() + ENDING_S
    while True:
        try:
            await server.check_free()
        except Conflict:
            ballot = await nodes.service(Mastership, me).vote()
            if ballot.master == me.name:
                raise Conflict(
                    f"{me.name} is the master already, and its coordinator runs. If that does not "
                    "answer, stop it, and give this command again."
                ) from None
            if loop.time() > limit:
                raise
            await asyncio.sleep(ENDING_LOOK_S)
        else:
            return
