"""Where an instance on shared storage moves."""

from itertools import islice

from common.errors import Conflict, NoCapacity, NotFound
from coordinator.allocator.allocation.search import CHOICES, why_unusable
from coordinator.allocator.allocation.why_not import why_not
from coordinator.allocator.model.cluster_model import model_of
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import REASONS
from coordinator.allocator.relocation.assignment import Assignment
from coordinator.allocator.relocation.resettle import new_homes
from coordinator.allocator.request import Choice, GroupOutcome, Relocate, Survey
from coordinator.allocator.snapshot import NOWHERE, Snapshot


def relocate(snapshot: Snapshot, request: Relocate) -> Survey:
    """Choose another node for an instance on shared storage, as hail does.

    The node that leaves its group balanced best is taken, the last among equals. Neither
    the group's policy nor whether every node can still be emptied plays a part. Limits on
    processors and tags are lifted when the instance's node is offline or drained.

    Raises:
        NotFound: the instance does not exist.
        Conflict: its disks are not on shared storage.
        NoCapacity: no other node of its group can take it; detail as of ``place``.
    """
    model = model_of(snapshot)
    index = _movable_instance(snapshot, request)
    instance, source = snapshot.instances[index], model.primary_of[index]
    group = model.group_of[source]
    in_group = model.groups[group]
    refused = {
        node: why_unusable(snapshot.nodes[node], request.among)
        for node in in_group
        if node != source
    }
    left = [node for node, why in refused.items() if not why]
    state = State(model)
    score_before = state.scope(in_group).standing.value
    present = Assignment(source, NOWHERE, model.location_score(instance, source))
    found = new_homes(state, instance, present, left, in_group, force=False)
    refused |= {node: REASONS[code] for node, code in zip(left, found.codes, strict=True)}
    best = islice(found.ranked, CHOICES)
    choices = [Choice((model.names[node],), score) for node, score in best]
    named = {model.names[node]: why for node, why in refused.items() if why}
    if not choices:
        subject = f"No other node of group {snapshot.groups[group].name} can take {instance.name}"
        raise NoCapacity(
            why_not(f"{subject} from {model.names[source]}", model, instance, named),
            refused={name: reason.name.lower() for name, reason in named.items()},
        )
    outcome = GroupOutcome(group, snapshot.groups[group].alloc_policy, tuple(choices))
    return Survey((outcome,), outcome, score_before, len(left), named)


def _movable_instance(snapshot: Snapshot, request: Relocate) -> int:
    names = snapshot.columns[1].names
    if request.instance not in names:
        raise NotFound(f"There is no instance {request.instance}.", instance=request.instance)
    index = names.index(request.instance)
    instance = snapshot.instances[index]
    if not instance.traits.is_external:
        raise Conflict(
            f"Instance {instance.name} cannot run on any other node: its disks "
            f"({instance.template}) are not on shared storage.",
            instance=instance.name,
        )
    return index
