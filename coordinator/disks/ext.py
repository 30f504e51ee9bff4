"""Disks of external storage: providers, which root puts on each node, make and attach them."""

import re

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import Backing, ExtBacking
from common.model.cluster import Cluster
from common.model.template import DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kind import DiskKind, NewDisk, kept_beside
from coordinator.disks.wish import DiskWish

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # becomes the name of a variable
_LONGEST = 1024


class ExtKind(DiskKind):
    """Each disk has a provider of its own, and is told to it with the disk's parameters."""

    heeds = frozenset({"provider", "provider_parameters"})

    def check_wish(self, wish: DiskWish) -> None:
        super().check_wish(wish)
        if not wish.provider:
            raise InvalidRequest(
                "Say which provider keeps the disk, as in --disk 0:size=10G,provider=NAME, or for "
                "disks that become its own --ext-params provider=NAME; "
                "“gnt-storage diagnose” lists them."
            )
        for name, value in wish.provider_parameters.items():
            if not _PARAMETER.fullmatch(name) or len(value) > _LONGEST or "\0" in value:
                raise InvalidRequest(
                    f"“{name}” cannot be told to a provider: names have letters, digits and “_-”, "
                    f"values at most {_LONGEST} characters."
                )

    def new_backing(self, cluster: Cluster, new: NewDisk) -> ExtBacking:  # noqa: ARG002
        return ExtBacking(
            provider=new.wish.provider,
            name=f"{new.disk}.ext",
            parameters=dict(new.wish.provider_parameters),
        )

    def wish_of(self, cluster: Cluster, backing: Backing) -> DiskWish:  # noqa: ARG002
        assert isinstance(backing, ExtBacking)
        return DiskWish(provider=backing.provider, provider_parameters=backing.parameters)

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec:  # noqa: ARG002
        """Keep it in a volume of the same provider, as Ganeti's exports do."""
        assert isinstance(disk.backing, ExtBacking)
        backing = replace(disk.backing, name=f"{uuid}.ext")
        return kept_beside(disk, uuid, backing)


EXT = ExtKind(DiskTemplate.EXT)
