"""Having a guest that runs use less of its memory, or more again."""

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.node import NodeRef
from common.names import InstanceId, InstanceName, MiB
from common.noderpc.instances import GuestReport, Instances
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.specs import backend
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_answers, check_online, is_alive


class MemoryPlan(Order, kw_only=True):
    instance: InstanceId
    name: InstanceName
    node: NodeRef
    memory: MiB
    before: MiB


def plan_memory(
    cluster: Cluster, after: Instance, found: GuestReport | None, memory: MiB
) -> MemoryPlan:
    """Plan that a guest uses so much of its memory.

    Args:
        cluster: as the job sees it.
        after: the instance as it will be.
        found: its guest, if there is one.
        memory: how much.

    Raises:
        InvalidRequest: the instance is not to have so much, or so little.
        Conflict: it does not run.
    """
    home = cluster.config.nodes[after.primary_node]
    check_settled(cluster, after)
    check_online(home)
    check_answers(found, after, home)
    if found is None or not is_alive(found):
        raise Conflict(
            f"Instance {after.name} does not run, so there is no memory to take from it; "
            "“-B maxmem=SIZE” changes what it is started with.",
            instance=after.name,
        )
    bounds = backend(cluster.config, after)
    most = min(bounds.maxmem, found.memory)
    if not bounds.minmem <= memory <= most:
        raise InvalidRequest(
            f"{after.name} uses between {bounds.minmem} (minmem) and {most} MiB of memory while it "
            f"runs; {memory} MiB is not between them.",
            instance=after.name,
        )
    return MemoryPlan(
        instance=after.uuid,
        name=after.name,
        node=home.ref,
        memory=memory,
        before=found.wanted_memory or found.memory,
    )


def set_memory(cluster: Cluster, plan: MemoryPlan) -> Step:
    """Have a guest use so much of its memory; undone, it is asked for what it used."""
    instances = cluster.call(Instances, plan.node)
    return act(
        f"have {plan.name} use {plan.memory} MiB of memory",
        lambda: instances.set_memory(instance=plan.instance, memory=plan.memory),
        undo=lambda: instances.set_memory(instance=plan.instance, memory=plan.before),
    )
