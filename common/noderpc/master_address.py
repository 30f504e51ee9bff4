"""What a node can be asked about the address that goes with the mastership."""

from abc import abstractmethod
from typing import Annotated

from msgspec import Meta

from common.model.master_address import MasterAddress
from common.names import Sentence
from common.rpc.declare import NodeService, rpc

HOLD_S = 5  # how long an order to have the address can be on its way

Lifetime = Annotated[int, Meta(ge=1, le=600)]


class MasterAddresses(NodeService, prefix="master-address"):
    """The master's address, as far as one node has it.

    It is given to a node for some seconds only, and the kernel takes it away when they are over:
    a node that is cut off loses it, whatever becomes of its daemons.
    """

    @rpc(timeout=HOLD_S, safe_to_repeat=True)
    @abstractmethod
    async def hold(self, *, address: MasterAddress, for_s: Lifetime) -> None:
        """Have the address until some seconds from now, and tell its neighbours if that is news.

        Raises:
            Conflict: the node has this address already, for good.
            NodeFailure: there is no such device, or the kernel refuses.
        """

    @rpc(timeout=HOLD_S, safe_to_repeat=True)
    @abstractmethod
    async def let_go(self, *, ip: str) -> None:
        """Have the address no more; fine if it is not here, or was not given by ``hold``."""

    @rpc(timeout=HOLD_S, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def holds(self, *, ip: str) -> Sentence:
        """Return the name of the device that has the address, or nothing."""
