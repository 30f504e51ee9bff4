"""New instances: allocate and multi-allocate."""

from __future__ import annotations

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.model.state import expect_pairs
from coordinator.allocator.request import Allocate
from coordinator.iallocator import show
from coordinator.iallocator.answers import Answer, Options, Refused
from coordinator.iallocator.choosing import (
    UNSUPPORTED,
    NothingFits,
    choose,
    choose_by_loss,
)
from coordinator.iallocator.names import find_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.snapshot import Group, Snapshot
    from coordinator.iallocator.choosing import Placed
    from coordinator.iallocator.requests import AllocateMany, AllocateOne, New


def allocate(model: ClusterModel, request: AllocateOne, options: Options) -> Answer:
    """Find nodes for one new instance.

    Raises:
        Refused: nothing fits.
    """
    placer = Placer.of(model.snapshot, options, request)
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
    placer = Placer(model.snapshot, options, options.among, group)
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
        among: frozenset[str] | None,
        group_name: str | None,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._among = among
        self._groups: frozenset[int] | None = None
        self.is_dedicated = _is_dedicated(cluster, group_name)

    @classmethod
    def of(cls, cluster: Snapshot, options: Options, request: AllocateOne) -> Placer:
        """For one instance; what the command line allows goes before what the request does."""
        among = options.among
        if among is None and request.among is not None:
            among = frozenset(request.among)
        return cls(cluster, options, among, request.group_name)

    def keep_to_group_of(self, placed: Placed) -> None:
        """Look at no other group from now on."""
        self._groups = frozenset({self._cluster.nodes[placed.nodes[0]].group})

    def place(self, model: ClusterModel, new: New, group_name: str | None) -> Placed:
        """Choose nodes for one instance.

        Raises:
            Refused: there is no such group, or nothing fits.
        """
        request = self.request(model, new, group_name)
        return choose_by_loss(model, request) if self.is_dedicated else choose(model, request)

    def request(self, model: ClusterModel, new: New, group_name: str | None) -> Allocate:
        """What is asked of the engine for one instance.

        Raises:
            Refused: there is no such group, or a number of nodes that makes no sense.
        """
        group = None if group_name is None else self._group(group_name)
        if new.required_nodes not in {1, 2}:
            raise Refused(self._unsupported(model, new, group))
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
            mirrored=new.required_nodes == 2,
        )

    def _group(self, name: str) -> int:
        try:
            return find_group(name, self._cluster.groups)
        except InvalidRequest as error:
            raise Refused(str(error)) from error

    def _unsupported(self, model: ClusterModel, new: New, group: int | None) -> str:
        """Say it of every group in question, unless a network is missing there anyway."""
        groups = self._cluster.groups
        if group is not None:
            return _why_not(groups[group], new)
        among = [groups[at] for at in model.groups]
        first: list[str] = []
        if not self.is_dedicated:
            first = [
                show.not_connected(f"group {each.name}", new.instance.name)
                for each in among
                if not _is_connected(each, new)
            ]
            among = [each for each in among if _is_connected(each, new)]
        errors = [f"Group {each.name}: error {_why_not(each, new)}" for each in among]
        return ", ".join([*first, *errors])


def _why_not(group: Group, new: New) -> str:
    if _is_connected(group, new):
        return UNSUPPORTED
    return show.not_connected(f"The group {group.name}", new.instance.name)


def _is_connected(group: Group, new: New) -> bool:
    return new.instance.networks <= {*group.networks}


def _is_dedicated(cluster: Snapshot, group_name: str | None) -> bool:
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
