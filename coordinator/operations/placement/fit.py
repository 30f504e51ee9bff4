"""Whether a node can take an instance: checks, and the promises that follow from them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from common.errors import Conflict, GntError, NoCapacity, NodeFailure
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import Node
from common.names import InstanceName, MiB
from common.noderpc.facts import NodeFacts
from coordinator.allocator import policy as policies
from coordinator.allocator.allocation.why_not import bounds_in_words
from coordinator.disks.exclusive import is_exclusive
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import generation_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.apart import find_unfit
from coordinator.operations.placement.built_in import place_here
from coordinator.operations.placement.demands import demand_of, seen_policy
from coordinator.operations.placement.look import Look, look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.space import find_shortage
from coordinator.operations.specs import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.nodes.reports import Live


async def check_still_fits(
    cluster: Cluster,
    planned: PlannedInstance,
    nodes: Sequence[Node],
    *,
    built_in: bool,
    nics: tuple[Nic, ...] = (),
    adopted: tuple[Disk, ...] = (),
) -> None:
    """Check on new reports that nodes can take an instance, and promise that they will.

    Args:
        cluster: as the job sees it.
        planned: the instance.
        nodes: those chosen, or named by the operator, the primary one first.
        built_in: whether all the rules of the built-in allocator have to hold still; else it
            is memory on the primary one, and disk space.
        nics: new ones, whose addresses are promised, too.
        adopted: disks that take no space, as they are there; nobody else gets their devices.

    Raises:
        Conflict: the disks cannot be mirrored between them.
        NoCapacity: says what is missing.
        NodeFailure: one does not answer.
    """
    live = await check_answer(cluster, nodes)
    if planned.instance.disk_template.traits.is_mirrored:
        check_mirrors_alike(live, nodes)
    # All nodes count only to whoever has to choose among them.
    look = await look_for(cluster) if built_in else _look_at(cluster, live)
    look = look.about(planned.disks)
    instance = planned.instance
    check_free_memory(look, nodes[0], _memory(look.config, instance), instance)
    for node in nodes:
        check_free_space(look, node, planned)
    if built_in:
        place_here(look, planned, only=[node.name for node in nodes])
    promise = promise_of(look.config, planned, nodes)
    cluster.promise(promise._replace(disks=adopted, nics=nics, port=instance.network_port))


async def take_memory(cluster: Cluster, node: Node, memory: MiB, instance: Instance) -> None:
    """Promise an instance memory on a node, if it is free and promised to nobody else.

    Raises:
        NoCapacity: says what is free.
        NodeFailure: the node does not answer.
    """
    live = await check_answer(cluster, [node], space=False)
    check_free_memory(_look_at(cluster, live), node, memory, instance)
    cluster.promise(Promise(instance.uuid, node.uuid, memory))


def _look_at(cluster: Cluster, live: "Live") -> Look:
    """Return how the nodes are that have just answered, without asking any others."""
    return Look(cluster.config, live, cluster.placing.promises.standing(but=cluster.owner))


async def check_answer(cluster: Cluster, nodes: Sequence[Node], *, space: bool = True) -> "Live":
    """Have nodes say anew what they have free, in their pools as well if not told otherwise.

    Raises:
        NodeFailure: one does not answer.
    """
    live = await cluster.facts_of(nodes, space=space)
    for node in nodes:
        answer = live.get(node.uuid)
        if isinstance(answer, GntError):
            raise NodeFailure(f"Node {node.name} cannot say what it has free: {answer}") from answer
    return live


def check_mirrors_alike(live: "Live", nodes: Sequence[Node]) -> None:
    """Refuse to begin disks on nodes of which one has DRBD 8.4, and another one DRBD 9.

    Raises:
        Conflict: says which has what.
    """
    answers = ((node, live.get(node.uuid)) for node in nodes)
    versions = {
        node.name: answer.drbd_version
        for node, answer in answers
        if isinstance(answer, NodeFacts) and answer.drbd_version
    }
    if len(set(map(generation_of, versions.values()))) > 1:
        told = " and ".join(f"{name} has DRBD {version}" for name, version in versions.items())
        raise Conflict(
            f"No new disk is mirrored between these nodes: {told}. Bring them to one of the two, "
            "or name nodes that have the same.",
            versions=versions,
        )


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
    """Refuse a node that lacks space for an instance's disks, or is not for such.

    Raises:
        Conflict: says why it is not.
        NoCapacity: says what is left of which pool, or how many spindles it takes.
    """
    if unfit := find_unfit(look, node, planned):
        refusal = NoCapacity if unfit.is_lack else Conflict
        raise refusal(f"Node {node.name} {unfit}.", node=node.name)
    lacking = find_shortage(look, node, look.needs(planned, node.uuid))
    if lacking is not None:
        raise NoCapacity(f"Node {node.name} {lacking} for {planned.instance.name}.", node=node.name)


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
    if why := policy_violation(config, planned, node):
        raise Conflict(f"{why} Use --ignore-ipolicy to override it.")


def policy_violation(config: Config, planned: PlannedInstance, node: Node) -> str:
    """Say in a sentence what the policy of a node's group has against an instance, or nothing."""
    group = config.groups[node.group]
    policy = seen_policy(config.policy_of(group))
    demand = demand_of(config, planned, None)
    # Who does not say how many spindles it has is told so elsewhere.
    exclusive = demand.disk_spindles is not None and is_exclusive(config, node.uuid)
    reason = policies.check_policy(policy, demand, exclusive=exclusive)
    if not reason:
        return ""
    return (
        f"The instance policy of group {group.name} does not allow {planned.instance.name}: "
        f"it {bounds_in_words(policy, demand, reason, exclusive=exclusive)}."
    )


def outside_policy(config: Config) -> dict[InstanceName, str]:
    """Say of each instance that the policy of its group does not allow why."""
    found: dict[InstanceName, str] = {}
    for instance in config.made_instances:
        node = config.nodes.get(instance.primary_node)
        planned = PlannedInstance(instance, config.disks_of(instance))
        if node and (why := policy_violation(config, planned, node)):
            found[instance.name] = why
    return found


def _memory(config: Config, instance: Instance) -> MiB:
    return backend(config, instance).maxmem if instance.takes_memory else MiB(0)
