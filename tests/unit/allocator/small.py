"""Small clusters, said in a line."""

from typing import Any

from coordinator.allocator.allocation import place as engine
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.request import Allocate, Survey
from coordinator.allocator.snapshot import NOWHERE, Group, Instance, Node, Snapshot
from tests.unit.allocator.clusters import OURS

NAMES = ("alpha", "beta", "gamma")
DEFAULT = Group(name="default", policy=OURS)


def node(name: str, *, free: int = 8000, **other: Any) -> Node:
    """8 GiB of memory, 100 GiB of disk, 8 processors, unless said otherwise."""
    values: dict[str, Any] = {
        "total_memory": 8192,
        "own_memory": 192,
        "free_memory": free,
        "total_disk": 102400,
        "free_disk": 102400,
        "total_cpus": 8,
        "own_cpus": 1,
    }
    return Node(name=name, **(values | other))


def demand(name: str = "web1", **other: Any) -> Instance:
    """512 MiB of memory and a shared disk of 64 MiB, unless said otherwise."""
    values: dict[str, Any] = {
        "template": "sharedfile",
        "memory": 512,
        "vcpus": 1,
        "disk": 64,
        "disks": (64,),
        "disk_spindles": 0,
    }
    return Instance(name=name, **(values | other))


def instance(name: str, primary: str, secondary: str | None = None, **other: Any) -> Instance:
    """As ``demand``, on nodes that have their places in ``NAMES``."""
    return demand(
        name,
        primary=NAMES.index(primary),
        secondary=NAMES.index(secondary) if secondary else NOWHERE,
        **other,
    )


def cluster(*nodes: Node, instances: tuple[Instance, ...] = (), **other: Any) -> Snapshot:
    """With one group, unless said otherwise."""
    values: dict[str, Any] = {"groups": (DEFAULT,)}
    return Snapshot(nodes=nodes, instances=instances, **(values | other))


def place(snapshot: Snapshot, request: Allocate) -> Survey:
    """Where it goes in this cluster."""
    return engine.place(ClusterModel(snapshot), request)


def survey(snapshot: Snapshot, request: Allocate) -> Survey:
    """What comes of each group of this cluster."""
    return engine.survey(ClusterModel(snapshot), request)
