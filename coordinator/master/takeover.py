"""Move the mastership to this node: what ``gnt-cluster master-failover`` does first.

It ends with a commit of the new epoch, by which this node is the master for good; the
coordinator is then started as on any other day.
"""

import time
from random import SystemRandom

from common.messages import Report
from common.names import Epoch, NodeName
from common.paths import Paths
from coordinator.master.local import calling, this_node
from coordinator.master.luxi_server import LuxiServer
from coordinator.master.master import Master, Outside
from coordinator.nodes.stranger import stranger
from coordinator.quorum.question import Mode, Word


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
    await LuxiServer(paths.luxi_socket).check_free()
    me = this_node(paths, port)
    async with calling(paths) as nodes:
        outside = Outside(nodes, stranger, time.time, SystemRandom())
        master = await Master.confirm(me, outside, Mode.TAKE_OVER, word)
        await master.take_over()
    won = master.confirmed.won
    return TakenOver(
        master=me.name, epoch=won.epoch, unheard=master.confirmed.unheard,
        overridden=tuple(str(objection) for objection in won.overridden),
    )  # fmt: skip
