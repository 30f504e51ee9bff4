"""New instances: allocate and multi-allocate."""

from __future__ import annotations

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from common.record import replace
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.model.state import expect_pairs
from coordinator.allocator.request import Allocate
from coordinator.iallocator.answers import Answer, Options, Refused
from coordinator.iallocator.choosing import NothingFits, choose
from coordinator.iallocator.names import find_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.choosing import Placed
    from coordinator.iallocator.requests import AllocateMany, AllocateOne, New


def allocate(model: ClusterModel, request: AllocateOne, options: Options) -> Answer:
    """Find nodes for one new instance.

    Raises:
        Refused: nothing fits.
    """
    placer = Placer(model.snapshot, options, request.group_name, request.among)
    placed = placer.place(model, request.new, request.group_name)
    return Answer(
        placed.info,
        [model.names[node] for node in placed.nodes],
        created={request.new.instance.name: placed.nodes},
        refused=placed.refused,
    )


def allocate_many(model: ClusterModel, request: AllocateMany, options: Options) -> Answer:
    """Find nodes for several new instances, each on what the others leave.

    hail looks for a group's name beside the instances rather than in each of them, and gives
    up altogether at the first that fits nowhere unless there is one. With exclusive storage
    and a group's name it even forgets what it has placed; without one it forgets all groups
    but that of the first. We do so only if ``strict``.

    Raises:
        Refused: one does not fit, and no group was named.
    """
    group = request.group_name
    placer = Placer(model.snapshot, options, group)
    expect_pairs(sum(new.required_nodes == 2 for new in request.news), model.size)
    is_odd = options.strict and placer.is_dedicated
    done: list[tuple[str, list[str]]] = []
    failed: list[tuple[str, str]] = []
    created: dict[str, tuple[int, ...]] = {}
    now = model
    for new in request.news:
        try:
            placed = placer.place(now, new, group)
        except NothingFits as error:
            if group is None:
                raise
            failed.append((new.instance.name, error.among_many))
            continue
        if is_odd and group is None:
            placer.keep_to_group_of(placed)
        if not is_odd or group is None:
            now = with_instance(now, new.instance, placed.nodes)
        done.append((new.instance.name, [model.names[node] for node in placed.nodes]))
        created[new.instance.name] = placed.nodes
    info = f"{len(failed)} instances failed to allocate and {len(done)} were allocated successfully"
    return Answer(info, [done, failed], created=created)


class Placer:
    """How the new instances of one request are placed."""

    def __init__(
        self,
        cluster: Snapshot,
        options: Options,
        group_name: str | None,
        among: tuple[str, ...] | None = None,
    ) -> None:
        """Place in a group; what the command line allows goes before ``among``, of the request."""
        self._cluster, self._options = cluster, options
        self._among = options.among
        if self._among is None and among is not None:
            self._among = frozenset(among)
        self._groups: frozenset[int] | None = None
        self.is_dedicated = is_dedicated(cluster, group_name)

    def keep_to_group_of(self, placed: Placed) -> None:
        """Look at no other group from now on."""
        self._groups = frozenset({self._cluster.nodes[placed.nodes[0]].group})

    def place(self, model: ClusterModel, new: New, group_name: str | None) -> Placed:
        """Choose nodes for one instance.

        Raises:
            Refused: there is no such group, or nothing fits.
        """
        request = self.request(new, group_name)
        return choose(model, replace(request, by_loss=self.is_dedicated))

    def request(self, new: New, group_name: str | None) -> Allocate:
        """What is asked of the engine for one instance.

        Raises:
            Refused: there is no such group, or what is mirrored is to have one node.
        """
        try:
            group = None if group_name is None else find_group(group_name, self._cluster.groups)
        except InvalidRequest as error:
            raise Refused(str(error)) from error
        asked = new.instance
        if new.required_nodes == 1 and asked.is_mirrored and self._options.check_capacity:
            raise Refused(
                f"Instance {asked.name} is to be mirrored (drbd), which takes two nodes, not one"
            )
        return Allocate(
            instance=asked,
            group=group,
            groups=self._groups,
            networks=asked.networks,
            among=self._among,
            check_redundancy=self._options.check_capacity,
            ignore_soft_limits=self._options.ignore_soft_errors,
            required=new.required_nodes,
        )


def is_dedicated(cluster: Snapshot, group_name: str | None) -> bool:
    """Whether all nodes that could be meant have exclusive storage.

    An unknown name, or a UUID, means no node, so all of none have it: as in hail.
    """
    relevant = {
        index
        for index, group in enumerate(cluster.groups)
        if (
            group.alloc_policy is not AllocationPolicy.UNALLOCABLE
            if group_name is None
            else group.name == group_name
        )
    }
    return all(node.exclusive or node.group not in relevant for node in cluster.nodes)
