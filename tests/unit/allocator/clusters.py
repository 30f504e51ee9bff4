"""Random clusters, from roomy to overfull, for tests that compare."""

from random import Random

from common.model.allocation_policy import AllocationPolicy
from common.model.instance import AdminState
from common.model.policy import InstancePolicy
from common.model.template import DiskTemplate
from common.names import MiB
from common.record import Record, replace
from coordinator.allocator.policy import Bounds, Spec
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import (
    NOWHERE,
    STATUS_OF,
    Group,
    Instance,
    Node,
    Snapshot,
)
from coordinator.operations.placement.demands import seen_policy

TEMPLATES = (
    DiskTemplate.DRBD,
    DiskTemplate.PLAIN,
    DiskTemplate.FILE,
    DiskTemplate.SHAREDFILE,
    DiskTemplate.DISKLESS,
    DiskTemplate.RBD,
    DiskTemplate.EXT,
    DiskTemplate.BLOCKDEV,
)


OURS = seen_policy(InstancePolicy())
"""The policy of a new cluster; Ganeti's own allows less."""


class Taste(Record):
    """What a random cluster is like; shares are between 0 and 1.

    Attributes:
        fill: how much of the memory instances take, roughly.
        trouble: share of nodes that are offline, drained or not VM-capable.
        sound: whether every node could take its peers' instances.
        uniform: whether all nodes and instances are alike, which makes many ties.
    """

    nodes: int = 8
    groups: int = 1
    templates: tuple[DiskTemplate, ...] = (DiskTemplate.DRBD,)
    fill: float = 0.4
    trouble: float = 0.1
    sound: bool = False
    uniform: bool = False
    tags: bool = False
    locations: bool = False
    migration: bool = False
    policies: bool = False
    forthcoming: float = 0.0
    down: float = 0.1

    @classmethod
    def random(cls, rng: Random) -> "Taste":
        kinds = rng.choice(
            ((DiskTemplate.DRBD,), (DiskTemplate.SHAREDFILE,), (DiskTemplate.PLAIN,), TEMPLATES)
        )
        return cls(
            nodes=rng.choice((1, 2, 3, 4, 5, 7, 10, 14, 20)),
            groups=rng.choice((1, 1, 1, 1, 2, 3)),
            templates=kinds,
            fill=rng.choice((0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9)),
            trouble=rng.choice((0.0, 0.0, 0.1, 0.2)),
            sound=rng.random() < 0.4,
            uniform=rng.random() < 0.3,
            tags=rng.random() < 0.3,
            locations=rng.random() < 0.2,
            migration=rng.random() < 0.15,
            policies=rng.random() < 0.2,
            forthcoming=rng.choice((0.0, 0.0, 0.1)),
            down=rng.choice((0.0, 0.1, 0.3)),
        )


def random_snapshot(rng: Random, taste: Taste) -> Snapshot:
    groups = tuple(_group(rng, taste, index) for index in range(taste.groups))
    nodes = [_node(rng, taste, index, groups) for index in range(taste.nodes)]
    room = [node.total_memory - node.own_memory - 1000 for node in nodes]
    space = [node.total_disk - 1000 for node in nodes]
    instances: list[Instance] = []
    wanted, used = taste.fill * sum(node.total_memory for node in nodes), 0
    for _ in range(12 * taste.nodes):
        if used >= wanted:
            break
        demand = random_demand(rng, taste, f"i{len(instances)}.x", inside=True)
        instance = _placed(rng, demand, nodes)
        if taste.sound and any(
            room[home] < demand.memory or space[home] < demand.disk for home in instance.homes
        ):
            continue
        for home in instance.homes:
            room[home] -= demand.memory
            space[home] -= demand.disk
        instances.append(instance)
        used += demand.memory
    cluster_tags: tuple[str, ...] = ()
    if taste.tags:
        cluster_tags += ("htools:iextags:service",)
    if taste.locations:
        cluster_tags += ("htools:nlocation:rack", "htools:desiredlocation:rack")
    if taste.migration:
        cluster_tags += ("htools:migration:cpu",)
        if rng.random() < 0.5:
            cluster_tags += ("htools:allowmigration:cpu:a::cpu:b",)
    return Snapshot(
        groups=groups,
        nodes=tuple(_measured(rng, at, node, instances) for at, node in enumerate(nodes)),
        instances=tuple(instances),
        tags=cluster_tags,
    )


def random_demand(rng: Random, taste: Taste, name: str, *, inside: bool = False) -> Instance:
    """An instance; one that is ``inside`` already may be down."""
    template = rng.choice(taste.templates)
    disks = tuple(
        MiB(1024 if taste.uniform else rng.randint(1, 80) * 128)
        for _ in range(0 if template is DiskTemplate.DISKLESS else rng.choice((1, 1, 2)))
    )
    tags = set()
    if taste.tags and rng.random() < 0.6:
        tags |= {f"service:{rng.choice('abcdefgh')}" for _ in range(rng.randint(1, 2))}
    if taste.locations and rng.random() < 0.3:
        tags.add(f"rack:{rng.choice('123')}")
    is_down = rng.random() < taste.down
    return Instance(
        name=name,
        template=template,
        memory=MiB(512 if taste.uniform else rng.choice((128, 256, 512, 1000, 2048, 3000))),
        vcpus=1 if taste.uniform else rng.randint(1, 4),
        disk=template.traits.disk_space(disks),
        disks=disks,
        spindle_use=1 if taste.uniform else rng.choice((1, 1, 2)),
        status=STATUS_OF[
            rng.choice((AdminState.DOWN, AdminState.OFFLINE)) if is_down else AdminState.UP
        ],
        tags=tuple(sorted(tags)),
        disk_spindles=0,
        forthcoming=inside and rng.random() < taste.forthcoming,
    )


def _group(rng: Random, taste: Taste, index: int) -> Group:
    allowed = OURS
    if taste.policies:
        small = Spec(
            memory_size=MiB(rng.choice((64, 64, 200, 600))), cpu_count=1, disk_count=0,
            disk_size=MiB(1), nic_count=0, spindle_use=1,
        )  # fmt: skip
        large = Spec(
            memory_size=MiB(rng.choice((1000, 2048, 32768))), cpu_count=rng.choice((2, 4, 8)),
            disk_count=rng.choice((1, 2, 16)), disk_size=MiB(rng.choice((5000, 1048576))),
            nic_count=8, spindle_use=rng.choice((1, 12)),
        )  # fmt: skip
        pairs = [Bounds(min=small, max=large)]
        if rng.random() < 0.5:
            pairs.append(Bounds(min=large, max=OURS.minmax[0].max))
        allowed = replace(
            OURS,
            minmax=tuple(pairs),
            vcpu_ratio=rng.choice((1.0, 2.0, 4.0)),
            spindle_ratio=rng.choice((2.0, 32.0)),
            disk_templates=allowed.disk_templates
            if rng.random() < 0.8
            else tuple(map(str, rng.sample(TEMPLATES, 5))),
        )
    choices = [AllocationPolicy.PREFERRED, *AllocationPolicy]
    return Group(
        name=f"g{index}",
        policy=allowed,
        # One group has to be open: hail takes another way when there is none.
        alloc_policy=rng.choice(choices) if index else AllocationPolicy.PREFERRED,
        networks=tuple(rng.sample(("net1", "net2"), rng.randint(0, 2))),
    )


def _node(rng: Random, taste: Taste, index: int, groups: tuple[Group, ...]) -> Node:
    # The first group gets a node in any case.
    group = rng.randrange(len(groups)) if index else 0
    memory = 16384 if taste.uniform else rng.choice((4096, 8192, 16384, 24000))
    disk = 200000 if taste.uniform else rng.choice((50000, 100000, 300000))
    tags = set()
    if taste.locations:
        tags.add(f"rack:{rng.choice('123')}")
    if taste.migration and rng.random() < 0.6:
        tags.add(f"cpu:{rng.choice('ab')}")
    in_trouble = rng.random() < taste.trouble
    trouble = rng.choice(("offline", "drained", "vm_capable")) if in_trouble else ""
    return Node(
        name=f"n{index}.x",
        group=group,
        total_memory=memory,
        own_memory=512 if taste.uniform else rng.randint(100, 1000),
        total_disk=disk,
        own_cpus=1,
        total_cpus=8 if taste.uniform else rng.choice((2, 4, 8, 16)),
        spindles=1 if taste.uniform else rng.randint(1, 3),
        offline=trouble == "offline",
        drained=trouble == "drained",
        vm_capable=trouble != "vm_capable",
        tags=frozenset(tags),
    )


def random_request(rng: Random, taste: Taste, snapshot: Snapshot) -> Allocate:
    """For any group, or now and then for one; sometimes restricted to some nodes."""
    among = None
    if rng.random() < 0.15:
        count = rng.randint(0, len(snapshot.nodes))
        among = frozenset(node.name for node in rng.sample(snapshot.nodes, count))
    networks = frozenset({"net1"}) if rng.random() < 0.1 else frozenset[str]()
    return Allocate(
        instance=random_demand(rng, taste, "new.x"),
        # Given a group, hail mixes up instances unless those of the group come first.
        group=0 if taste.groups == 1 and rng.random() < 0.2 else None,
        among=among,
        networks=networks,
        check_redundancy=rng.random() < 0.7,
    )


def _placed(rng: Random, demand: Instance, nodes: list[Node]) -> Instance:
    """On any node; mirrored within the group where it has another node."""
    primary = rng.randrange(len(nodes))
    group = nodes[primary].group
    others = [at for at, node in enumerate(nodes) if node.group == group and at != primary]
    if demand.is_mirrored and not others:
        demand = replace(demand, template=DiskTemplate.PLAIN)
    secondary = rng.choice(others) if demand.is_mirrored else NOWHERE
    return replace(demand, primary=primary, secondary=secondary)


def _measured(rng: Random, at: int, node: Node, instances: list[Instance]) -> Node:
    """With what is free: about what should be, now and then less or more."""
    free_memory_is_off = rng.choice((0, 0, 0, -50, 100, 700))
    if not node.is_live:
        return replace(
            node, total_memory=0, own_memory=0, total_disk=0, total_cpus=0, own_cpus=0, spindles=0
        )
    memory = int(node.total_memory) - node.own_memory
    disk = int(node.total_disk)
    for instance in instances:
        if instance.primary == at:
            memory -= instance.used_memory
        if at in instance.homes and instance.is_local:
            disk -= 0 if instance.forthcoming else instance.disk
    return replace(
        node,
        free_memory=max(0, memory - free_memory_is_off),
        free_disk=max(0, disk),
    )
