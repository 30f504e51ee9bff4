"""Pools: the space on a node that disks are cut from."""

from common.messages import Order
from common.model.pool_kind import PoolKind
from common.names import Path


class Pool(Order):
    """One place for disks; a node may have several of a kind."""

    kind: PoolKind
    name: Path  # of a directory: its path; of a volume group: its name, or group/thin pool

    def __str__(self) -> str:
        return f"the {self.kind.replace('-', ' ')} {self.name}"
