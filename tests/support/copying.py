"""Two nodes between which a disk is copied, whatever carries it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from common.noderpc.disks import Access, DiskSpec
from noded.copies.interface import Copier
from noded.storage.interface import Storage


class CopyRig(Protocol):
    """Nodes by name, with a disk each; that of alpha is what is copied."""

    copiers: dict[str, Copier]
    storages: dict[str, Storage]
    disks: dict[str, DiskSpec]

    def fill(self, node: str) -> None: ...


R = TypeVar("R", bound=CopyRig)


async def told(rig: R, story: Callable[[R], Awaitable[None]], copy: str) -> None:
    """Tell a story with disks that are there, and leave nothing of its copy running."""
    for name, disk in rig.disks.items():
        await rig.storages[name].ensure_present(disk)
        await rig.storages[name].attach(disk, Access.SOLE)
    rig.fill("alpha")
    try:
        await story(rig)
    finally:
        for copier in rig.copiers.values():
            await copier.end(copy)
