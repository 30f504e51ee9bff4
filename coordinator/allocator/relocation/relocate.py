"""Another node for an instance on shared storage, or another secondary one for a mirrored."""

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType

from common.errors import Conflict, NotFound
from common.names import NodeName
from coordinator.allocator.allocation.search import CHOICES, why_unusable
from coordinator.allocator.allocation.why_not import Miss, no_capacity
from coordinator.allocator.model.assignment import Assignment
from coordinator.allocator.model.cluster_model import model_of
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import REASONS
from coordinator.allocator.relocation.resettle import new_homes, new_secondaries
from coordinator.allocator.request import Choice, GroupOutcome, Relocate, Survey
from coordinator.allocator.snapshot import NOWHERE, Snapshot


def relocate(
    snapshot: Snapshot, request: Relocate, missing: Mapping[NodeName, Miss] = MappingProxyType({})
) -> Survey:
    """Choose another node for an instance, as hail does.

    The node that leaves its group balanced best is taken, the last among equals. Neither
    the group's policy nor whether every node can still be emptied plays a part. Limits on
    processors and tags are lifted when the node that it leaves is offline or drained. ``missing``
    is what nodes lack that are not among those to look at.

    Raises:
        NotFound: the instance does not exist.
        Conflict: its disks are neither on shared storage nor on two nodes.
        NoCapacity: no other node of its group can take it; detail as of ``place``.
    """
    model = model_of(snapshot)
    index = _movable_instance(snapshot, request)
    instance, homes = snapshot.instances[index], snapshot.instances[index].homes
    group = model.group_of[homes[0]]
    in_group = model.groups[group]
    refused = {
        node: why_unusable(snapshot.nodes[node], request.among)
        for node in in_group
        if node not in homes
    }
    left = [node for node, why in refused.items() if not why]
    state = State(model)
    score_before = state.scope(in_group).standing.value
    location = model.location_score(instance, *homes)
    present = Assignment(instance, instance.primary, instance.secondary, location)
    find = new_secondaries if instance.is_mirrored else new_homes
    found = find(state, present, left, in_group, force=False)
    refused |= {node: REASONS[code] for node, code in zip(left, found.codes, strict=True)}
    best = islice(found.ranked(last_if_nan=True), CHOICES)
    choices = [Choice((model.names[node],), score) for node, score in best]
    named = {model.names[node]: why for node, why in refused.items() if why}
    if not choices:
        what = f"take {instance.name} from {model.names[homes[0]]}"
        if instance.is_mirrored:
            what = f"be the secondary one of {instance.name}"
        subject = f"No other node of group {snapshot.groups[group].name} can {what}"
        lacking = {name: miss for name, miss in missing.items() if name in named}
        raise no_capacity(subject, model, instance, named, missing=lacking)
    policy = snapshot.groups[group].alloc_policy
    outcome = GroupOutcome(group, policy, tuple(choices), len(left))
    return Survey((outcome,), outcome, score_before, named)


def _movable_instance(snapshot: Snapshot, request: Relocate) -> int:
    names = snapshot.columns[1].names
    if request.instance not in names:
        raise NotFound(f"There is no instance {request.instance}.", instance=request.instance)
    index = names.index(request.instance)
    instance = snapshot.instances[index]
    if not instance.traits.is_external and instance.secondary == NOWHERE:
        raise Conflict(
            f"Instance {instance.name} cannot run on any other node: its disks "
            f"({instance.template}) are not on shared storage.",
            instance=instance.name,
        )
    return index
