"""Give an order of an epoch that is over, as a master would that does not know it yet."""

import asyncio
import sys

from msgspec.structs import replace

from common.errors import GntError
from common.names import Epoch, NodeName
from common.noderpc.mastership import Mastership
from common.noderpc.network import Network
from common.paths import Paths
from coordinator.master.local import calling, this_node


async def main(address: str, name: str) -> None:
    """Order the node at ``address`` to remove no taps, in the epoch before its own."""
    paths = Paths()
    node = replace(this_node(paths, 1811), name=NodeName(name), primary_ip=address)
    async with calling(paths) as nodes:
        ballot = await nodes.service(Mastership, node).vote()
        old = nodes.with_epoch(Epoch(ballot.epoch - 1))
        await old.service(Network, node).remove_taps(nics=())


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2]))
    except GntError as error:
        sys.exit(error.message)
