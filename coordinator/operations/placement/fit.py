"""Whether a node can take an instance: checks, and the promises that follow from them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from common.errors import Conflict, GntError, NoCapacity, NodeFailure
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.pool import Pool
from common.model.template import DiskTemplate
from common.names import MiB, NodeName
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.look import Look, look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.request import Allocate, Placement
    from coordinator.nodes.reports import Live


async def check_still_fits(
    cluster: Cluster, planned: PlannedInstance, nodes: Sequence[Node], *, built_in: bool
) -> None:
    """Check on new reports that nodes can take an instance, and promise that they will.

    Args:
        cluster: as the job sees it.
        planned: the instance.
        nodes: those chosen, or named by the operator, the primary one first.
        built_in: whether all the rules of the built-in allocator have to hold still; else it
            is memory on the primary one, and disk space.

    Raises:
        NoCapacity: says what is missing.
        NodeFailure: one does not answer.
    """
    await check_answer(cluster, nodes)
    look = await look_for(cluster)
    instance = planned.instance
    check_free_memory(look, nodes[0], _memory(look.config, instance), instance)
    for node in nodes:
        check_free_space(look, node, planned)
    if built_in:
        place_here(look, planned, only=[node.name for node in nodes])
    cluster.promise(promise_of(look.config, planned, nodes))


async def take_memory(cluster: Cluster, node: Node, memory: MiB, instance: Instance) -> None:
    """Promise an instance memory on a node, if it is free and promised to nobody else.

    Raises:
        NoCapacity: says what is free.
        NodeFailure: the node does not answer.
    """
    live = await check_answer(cluster, [node])
    look = Look(cluster.config, live, cluster.placing.promises.standing(but=cluster.owner))
    check_free_memory(look, node, memory, instance)
    cluster.promise(Promise(instance.uuid, node.uuid, memory))


async def check_answer(cluster: Cluster, nodes: Sequence[Node]) -> "Live":
    """Have nodes say anew what they have free.

    Raises:
        NodeFailure: one does not answer.
    """
    live = await cluster.facts_of(nodes)
    for node in nodes:
        answer = live.get(node.uuid)
        if isinstance(answer, GntError):
            raise NodeFailure(f"Node {node.name} cannot say what it has free: {answer}") from answer
    return live


def check_free_memory(look: Look, node: Node, memory: MiB, instance: Instance) -> None:
    """Refuse a node on which an instance's memory is not free, or promised to others.

    Raises:
        NoCapacity: says what is free.
    """
    facts = look.facts(node)
    if facts is None:
        raise NodeFailure(f"Node {node.name} cannot say what it has free.", node=node.name)
    free = look.free_memory(node, facts, but=instance.uuid)
    if free >= memory:
        return
    others = " that is not promised to others" if free < facts.memory_free else ""
    raise NoCapacity(
        f"Node {node.name} has {max(0, free)} MiB of memory free{others}; {instance.name} needs "
        f"{memory} MiB.",
        node=node.name,
    )


def check_free_space(look: Look, node: Node, planned: PlannedInstance) -> None:
    """Refuse a node that lacks space for an instance's disks.

    Raises:
        NoCapacity: says what is left.
    """
    instance, facts = planned.instance, look.facts(node)
    pool, size = space_for(look.config, instance.disk_template, _sizes(planned))
    space = look.free_space(node, facts, pool) if facts else None
    if space is not None and space < size:
        raise NoCapacity(
            f"Node {node.name} has {max(0, space)} MiB left for {instance.disk_template} disks; "
            f"{instance.name} needs {size} MiB.",
            node=node.name,
        )


def promise_of(config: Config, planned: PlannedInstance, nodes: Sequence[Node]) -> Promise:
    """Return what a new instance takes of ``nodes``, the primary one first.

    That is memory on the primary one, and disk space wherever its data is. What a secondary one
    has to keep free for a failover follows from its being one.
    """
    uuids = [node.uuid for node in nodes]
    instance = replace(planned.instance, primary_node=uuids[0])
    holders = kind_of(instance.disk_template).holders(uuids)
    disks = tuple(replace(disk, nodes=holders) for disk in planned.disks)
    memory = _memory(config, instance)
    return Promise(instance.uuid, uuids[0], memory, PlannedInstance(instance, disks))


def check_policy(config: Config, planned: PlannedInstance, node: Node) -> None:
    """Refuse an instance that the policy of the node's group does not allow.

    Raises:
        Conflict: says which quantity is out of bounds.
    """
    from coordinator.allocator.allocation.numbers import bounds_in_words
    from coordinator.allocator.policy import check_policy as find_violation
    from coordinator.operations.placement.demands import demand_of

    group = config.groups[node.group]
    policy = config.policy_of(group)
    demand = demand_of(config, *planned)
    reason = find_violation(policy, demand)
    if reason:
        raise Conflict(
            f"The instance policy of group {group.name} does not allow {planned.instance.name}: "
            f"it {bounds_in_words(policy, demand, reason)}. Use --ignore-ipolicy to override it."
        )


def place_here(
    look: Look, planned: PlannedInstance, *, only: Sequence[NodeName] = ()
) -> "Placement":
    """Have the built-in allocator choose nodes, or look whether ``only`` these will do.

    Raises:
        NoCapacity: no node can take it; says how many were refused for what.
    """
    from coordinator.allocator.model.cluster_model import model_of

    placement = place_by(model_of(look.snapshot), request_for(look, planned, only=only))
    possible = (placement.nodes, *(choice.nodes for choice in placement.runners_up))
    if only and tuple(only) not in possible:  # but the other way round
        raise NoCapacity(
            f"{planned.instance.name} can no longer be on {only[0]} with {only[1]} as its "
            "secondary node."
        )
    return placement


def place_by(model: "ClusterModel", request: "Allocate") -> "Placement":
    """The same by a model that may have gone on since the look.

    Raises:
        NoCapacity: as ``place_here``.
    """
    from coordinator.allocator.allocation.numbers import forbidden_in
    from coordinator.allocator.allocation.place import place

    try:
        return place(model, request)
    except NoCapacity as error:
        if request.among is None or len(request.among) == 1:
            raise
        # Of nodes that lack space the policy was not asked; it may be what is in the way.
        policies = [forbidden_in(g, request.instance) for g in model.snapshot.groups]
        full = sum(node.is_live and node.name not in request.among for node in model.snapshot.nodes)
        raise NoCapacity(
            " ".join(
                (
                    error.message,
                    f"Of those not asked for, {full} lack space for its disks.",
                    *filter(None, policies),
                )
            ),
            **error.detail,
        ) from error


def request_for(
    look: Look, planned: PlannedInstance, *, only: Sequence[NodeName] = ()
) -> "Allocate":
    from coordinator.allocator.request import Allocate
    from coordinator.operations.placement.demands import demand_of

    spacious = nodes_with_space(look, planned.instance.disk_template, _sizes(planned))
    return Allocate(
        instance=demand_of(look.config, *planned),
        among=frozenset(only) if only else spacious,
        # That every node could be emptied onto others is asked only where there are others.
        check_redundancy=look.has_several_usable,
    )


def nodes_with_space(
    look: Look, template: DiskTemplate, sizes: Sequence[MiB]
) -> frozenset[NodeName] | None:
    """Return the nodes with space for disks; None: all. Allocators do not look at it."""
    pool, size = space_for(look.config, template, sizes)
    names = set()
    for node in look.config.sorted_nodes():
        facts = look.facts(node)
        space = look.free_space(node, facts, pool) if facts else None
        if space is None or space >= size:
            names.add(node.name)
    return frozenset(names) if len(names) < len(look.config.nodes) else None


def space_for(
    config: Config, template: DiskTemplate, sizes: Sequence[MiB]
) -> tuple[Pool | None, MiB]:
    """Return of which pool new disks take how much, on each node that they take space of."""
    kind = kind_of(template)
    return kind.pool(config.cluster), kind.traits.disk_space(sizes)


def _sizes(planned: PlannedInstance) -> list[MiB]:
    return [disk.size for disk in planned.disks]


def _memory(config: Config, instance: Instance) -> MiB:
    is_up = instance.admin_state is AdminState.UP
    return backend(config, instance).maxmem if is_up else MiB(0)
