"""The cluster after moves, for tables and for saving."""

from __future__ import annotations

from collections import Counter

from common.record import replace
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import UNKNOWN
from coordinator.allocator.snapshot import NOWHERE, Instance, Node, Snapshot
from coordinator.htools.tables import NodeNow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.allocator.balancing.balance import Move


def settled(
    cluster: Snapshot, moved: Iterable[tuple[int, Instance]], news: Sequence[Instance] = ()
) -> Snapshot:
    """The cluster with instances as they will be, by index, and with new ones after all others.

    Nodes have what that leaves of their disk space, and of spindles as htools count them.
    """
    instances, nodes = list(cluster.instances), list(cluster.nodes)
    for index, after in moved:
        _take(nodes, instances[index], +1)
        _take(nodes, after, -1)
        instances[index] = after
    for new in news:
        _take(nodes, new, -1)
    return replace(cluster, instances=(*instances, *news), nodes=tuple(nodes))


def moved(cluster: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """The cluster with instances where moves took them."""
    instances = cluster.instances
    each = ((move.instance, at_home(instances[move.instance], move.after)) for move in moves)
    return settled(cluster, each)


def at_home(one: Instance, homes: Sequence[int]) -> Instance:
    """The instance on these nodes, its primary one first."""
    primary, secondary, *_ = *homes, NOWHERE
    return replace(one, primary=primary, secondary=secondary)


def _take(nodes: list[Node], one: Instance, sign: int) -> None:
    """Give back (+1) or take (-1) what an instance has of its nodes."""
    for home in () if one.forthcoming else one.homes:
        node = nodes[home]
        disk = node.free_disk + (sign * one.disk if one.is_local else 0)
        spindles = 0
        if node.exclusive:
            spindles = node.free_spindles + sign * (one.disk_spindles or 0)
            if sign < 0 and one.disk_spindles is None:
                spindles = UNKNOWN
        nodes[home] = replace(node, free_disk=disk, free_spindles=spindles)


def nodes_now(
    model: ClusterModel,
    before: Snapshot,
    suffix: str,
    nodes: Iterable[int],
    moves: Sequence[Move] = (),
) -> list[NodeNow]:
    """What the table of some nodes shows.

    ``before`` is the cluster before the moves, ``model`` after them; ``suffix`` of names is not
    shown.
    """
    lists = _Lists(before)
    for move in moves:
        lists.move(move)
    cluster, rules = moved(before, moves), model.rules
    on: dict[int, list[Instance]] = {}
    for one in cluster.instances:
        on.setdefault(one.primary, []).append(one)
    return [
        NodeNow(
            node=node,
            index=index,
            alias=node.name.removesuffix(suffix),
            has=model.rows[index],
            used_memory=sum(one.used_memory for one in on.get(index, ())),
            missing=model.missing[index],
            primaries=lists.primaries[index],
            secondaries=lists.secondaries[index],
            tags=sorted(
                Counter(
                    tag for one in on.get(index, ()) for tag in rules.exclusion_tags(one.tags)
                ).items()
            ),
            peers=lists.peers[index],
        )
        for index in nodes
        for node in [cluster.nodes[index]]
    ]


def instances_on(model: ClusterModel, nodes: Iterable[int]) -> list[int]:
    """The instances that have one of some nodes, forthcoming ones left out."""
    some, homes = {*nodes}, zip(model.primary_of, model.secondary_of, model.real, strict=True)
    return [i for i, (*ends, real) in enumerate(homes) if real and not some.isdisjoint(ends)]


def split_instances(cluster: Snapshot) -> list[str]:
    """Names of instances on nodes of different groups."""
    nodes, instances = cluster.nodes, cluster.instances
    return [i.name for i in instances if len({nodes[home].group for home in i.homes}) > 1]


class _Lists:
    """Who is on which node, in the order in which Ganeti's tools list them: newest first."""

    def __init__(self, cluster: Snapshot) -> None:
        self._instances = cluster.instances
        count = len(cluster.nodes)
        self.primaries: list[list[int]] = [[] for _ in range(count)]
        self.secondaries: list[list[int]] = [[] for _ in range(count)]
        # Per node: primary nodes and what is kept free for them, most first.
        self.peers: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for index, one in enumerate(cluster.instances):
            if not one.forthcoming:
                self._enter(index, one.primary, one.secondary)

    def move(self, move: Move) -> None:
        if self._instances[move.instance].forthcoming:
            return
        primary, secondary = move.before
        self.primaries[primary].remove(move.instance)
        if secondary != NOWHERE:
            self.secondaries[secondary].remove(move.instance)
            self._keep(secondary, primary, -self._needs(move.instance), least=1)
        self._enter(move.instance, *move.after)

    def _enter(self, index: int, primary: int, secondary: int) -> None:
        self.primaries[primary].insert(0, index)
        if secondary != NOWHERE:
            self.secondaries[secondary].insert(0, index)
            self._keep(secondary, primary, self._needs(index), least=0)

    def _needs(self, index: int) -> int:
        return self._instances[index].reserved_memory

    def _keep(self, node: int, peer: int, change: int, *, least: int) -> None:
        """Change what is kept for a peer; it then comes before those of the same amount."""
        left = dict(self.peers[node]).get(peer, 0) + change
        rest = [each for each in self.peers[node] if each[0] != peer]
        self.peers[node] = rest
        if left >= least:
            at = next((i for i, each in enumerate(rest) if each[1] <= left), len(rest))
            rest.insert(at, (peer, left))
