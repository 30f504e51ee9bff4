"""The numbers behind a refusal: how many processors are taken, what bounds a policy sets."""

from __future__ import annotations

from coordinator.allocator.policy import check_policy
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from common.model.policy import Bounds, InstancePolicy
    from common.names import NodeName
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.snapshot import Group, Instance

MOST_NODES = 3  # named one by one
_POLICY = frozenset(
    {
        Reason.POLICY_MEMORY,
        Reason.POLICY_DISK,
        Reason.POLICY_CPU,
        Reason.POLICY_SPINDLES,
        Reason.POLICY_DISK_COUNT,
        Reason.POLICY_TEMPLATE,
    }
)


def numbers_behind(
    model: ClusterModel, demand: Instance, refused: Mapping[NodeName, Reason]
) -> Iterator[str]:
    """Yield sentences with what an operator would have to look up otherwise.

    Args:
        model: the cluster.
        demand: what was asked for.
        refused: why each node cannot take it.
    """
    named = set()
    for name, reason in refused.items():
        if reason not in _POLICY:
            continue
        group = model.snapshot.groups[model.group_of[model.names.index(name)]]
        if group.name not in named:
            named.add(group.name)
            bounds = bounds_in_words(group.policy, demand, reason)
            yield f"The policy of group {group.name} {bounds}."
    full = [name for name, reason in refused.items() if reason is Reason.CPU]
    for name in full[:MOST_NODES]:
        yield f"{name} {_processors(model, model.names.index(name), demand)}."


def forbidden_in(group: Group, demand: Instance) -> str:
    """Say what the policy of a group allows, if it does not allow this; else nothing."""
    reason = check_policy(group.policy, demand)
    if not reason:
        return ""
    return f"The policy of group {group.name} {bounds_in_words(group.policy, demand, reason)}."


def bounds_in_words(policy: InstancePolicy, demand: Instance, reason: Reason) -> str:
    """Say what a policy allows, and what was asked for instead: a predicate."""
    if reason is Reason.POLICY_TEMPLATE:
        return f"allows {', '.join(policy.disk_templates)}, not {demand.template}"
    allowed = " or ".join(_range(bounds, reason) for bounds in policy.minmax)
    return f"allows {allowed}, not {_asked(demand, reason)}"


def _range(bounds: Bounds, reason: Reason) -> str:
    field, what = {
        Reason.POLICY_MEMORY: ("memory_size", "MiB of memory"),
        Reason.POLICY_DISK: ("disk_size", "MiB a disk"),
        Reason.POLICY_CPU: ("cpu_count", "processors"),
        Reason.POLICY_SPINDLES: ("spindle_use", "spindles"),
        Reason.POLICY_DISK_COUNT: ("disk_count", "disks"),
    }[reason]
    return f"{getattr(bounds.min, field)} to {getattr(bounds.max, field)} {what}"


def _asked(demand: Instance, reason: Reason) -> str:
    match reason:
        case Reason.POLICY_MEMORY:
            return str(demand.memory)
        case Reason.POLICY_DISK:
            return ", ".join(map(str, demand.disks))
        case Reason.POLICY_CPU:
            return str(demand.vcpus)
        case Reason.POLICY_SPINDLES:
            return str(demand.spindle_use)
        case _:
            return str(len(demand.disks))


def _processors(model: ClusterModel, node: int, demand: Instance) -> str:
    resources = model.resources
    total, ratio = float(resources.total_cpus[node]), float(resources.cpu_ratio[node])
    return (
        f"has {int(resources.cpus[node])} of {total * ratio:g} virtual processors taken "
        f"({total:g} real ones, {ratio:g} for each), {demand.vcpus} were asked for"
    )
