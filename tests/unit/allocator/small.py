"""Small clusters, said in a line."""

from typing import Any

from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, MiB, NodeName
from coordinator.allocator.picture import (
    Demand,
    GroupPicture,
    InstancePicture,
    NodePicture,
    Picture,
)

DEFAULT = GroupName("default")


def node(name: str, *, free: int = 8000, **other: Any) -> NodePicture:
    """8 GiB of memory, 100 GiB of disk, 8 processors, unless said otherwise."""
    values: dict[str, Any] = {
        "group": DEFAULT,
        "total_memory": 8192,
        "reserved_memory": 192,
        "free_memory": free,
        "total_disk": 102400,
        "free_disk": 102400,
        "total_cpus": 8,
        "reserved_cpus": 1,
    }
    return NodePicture(name=NodeName(name), **(values | other))


def demand(name: str = "web1", **other: Any) -> Demand:
    """512 MiB of memory and a shared disk of 64 MiB, unless said otherwise."""
    values: dict[str, Any] = {
        "template": DiskTemplate.SHAREDFILE,
        "memory": MiB(512),
        "vcpus": 1,
        "disk": MiB(64),
        "disks": (MiB(64),),
    }
    return Demand(name=InstanceName(name), **(values | other))


def instance(
    name: str, primary: str, secondary: str | None = None, **other: Any
) -> InstancePicture:
    """As ``demand``, on its nodes."""
    asked = demand(name, **other)
    return InstancePicture(
        **{field: getattr(asked, field) for field in Demand.__slots__},
        primary=NodeName(primary),
        secondary=NodeName(secondary) if secondary else None,
    )


def cluster(
    *nodes: NodePicture, instances: tuple[InstancePicture, ...] = (), **other: Any
) -> Picture:
    """With one group, unless said otherwise."""
    values: dict[str, Any] = {"groups": (GroupPicture(name=DEFAULT),)}
    return Picture(nodes=nodes, instances=instances, **(values | other))
