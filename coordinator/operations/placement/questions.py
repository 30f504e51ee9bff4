"""What could be placed, and why there: questions to the allocator that change nothing."""

from typing import TYPE_CHECKING, Any, assert_never, cast

from common.messages import Order, from_builtins
from common.model.parameters import Backend, filled, sound
from common.model.template import DiskTemplate
from coordinator.disks.kinds import check_enabled
from coordinator.operations.devices import DiskRequest
from coordinator.operations.placement.fit import nodes_with_space
from coordinator.operations.placement.look import Look
from coordinator.operations.specs import read_backend

if TYPE_CHECKING:
    from coordinator.allocator.allocation.explain import Explanation
    from coordinator.allocator.request import Allocate
    from coordinator.allocator.snapshot import Instance


class InstanceSpec(Order, tag_field="type"):
    """An instance that might be.

    Attributes:
        beparams: over the cluster's; sizes in MiB.
        group: name or UUID; None for any.
    """

    disk_template: DiskTemplate
    disks: tuple[DiskRequest, ...] = ()
    beparams: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    group: str | None = None


class AllocateQuestion(InstanceSpec, tag="allocate"):
    """Where would it go, and why?"""


class CapacityQuestion(InstanceSpec, tag="capacity"):
    """How many of it fit, one after the other, and where?"""

    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise ValueError(f"limit is {self.limit}; 0 is the least")


class BalanceQuestion(Order, tag_field="type", tag="balance"):
    """Which moves would make it better?

    Attributes:
        max_operations: at most so many moves; None for all that are worth it.
        group: name or UUID; None for all groups.
    """

    max_operations: int | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.max_operations is not None and self.max_operations < 0:
            raise ValueError(f"max_operations is {self.max_operations}; 0 is the least")


Question = AllocateQuestion | CapacityQuestion | BalanceQuestion


def read_question(words: Any) -> Question:
    """Read what a client asks.

    Raises:
        InvalidRequest: says which field is wrong.
    """
    kind = cast("type[Question]", Question)  # msgspec takes unions, too
    return from_builtins(words, kind, what="the question to the allocator")


def answer(look: Look, question: Question) -> dict[str, Any]:
    """Answer a question by what was seen, as JSON values.

    Raises:
        NotFound: the group does not exist.
        InvalidRequest: a parameter is unknown or does not fit.
    """
    match question:
        case AllocateQuestion():
            return _explain(look, question)
        case CapacityQuestion():
            return _count(look, question)
        case BalanceQuestion():
            return _balance(look, question)
        case _:
            assert_never(question)


def _explain(look: Look, question: AllocateQuestion) -> dict[str, Any]:
    """Choose nodes, and say why: an ``Explanation``, with the words for terms.

    Raises:
        NotFound: the group does not exist.
        InvalidRequest: a parameter is unknown or does not fit.
    """
    from coordinator.allocator.allocation.explain import explain
    from coordinator.allocator.allocation.place import survey
    from coordinator.allocator.model.cluster_model import ClusterModel

    model = ClusterModel(look.snapshot)
    request = _request(look, question)
    return _as_json(explain(model, request, survey(model, request)))


def _count(look: Look, question: CapacityQuestion) -> dict[str, Any]:
    """Count: ``count``, the nodes of each, and why a node takes no more."""
    from coordinator.allocator.allocation.capacity import MOST, room_for
    from coordinator.allocator.model.cluster_model import ClusterModel

    limit = MOST if question.limit is None else min(question.limit, MOST)
    room = room_for(ClusterModel(look.snapshot), _request(look, question), limit)
    return {
        "count": len(room.placements),
        "placements": [list(nodes) for nodes in room.placements],
        "refused": {name: reason.in_words(1) for name, reason in room.refused.items()},
    }


def _balance(look: Look, question: BalanceQuestion) -> dict[str, Any]:
    """Find moves: ``moves`` as name, group and nodes afterwards, ``jobs`` as opcodes, ``info``."""
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.iallocator.answers import Options
    from coordinator.iallocator.balancing import balance
    from coordinator.iallocator.requests import BalanceCluster
    from coordinator.iallocator.response import Moves

    group = None if question.group is None else look.config.group(question.group).uuid
    request = BalanceCluster(question.max_operations, group)
    found = balance(ClusterModel(look.snapshot), request, Options())
    moves: Moves = found.result
    return {
        "moves": [[name, group, list(nodes)] for name, group, nodes in moves.moved],
        "jobs": [list(job) for job in moves.jobs],
        "info": found.info,
    }


def _request(look: Look, spec: InstanceSpec) -> "Allocate":
    from coordinator.allocator.request import Allocate

    group = None if spec.group is None else _group(look, spec.group)
    return Allocate(
        instance=_demand(look, spec),
        group=group,
        among=nodes_with_space(look, spec.disk_template, [disk.size_mib for disk in spec.disks]),
        check_redundancy=look.has_several_usable,
    )


def _group(look: Look, name: str) -> int:
    """Its index in the snapshot."""
    return look.config.sorted_groups().index(look.config.group(name))


def _demand(look: Look, spec: InstanceSpec) -> "Instance":
    from coordinator.allocator.snapshot import Instance

    check_enabled(look.config.cluster, spec.disk_template)
    sizes = tuple(disk.size_mib for disk in spec.disks)
    layers = (sound(Backend, look.config.cluster.beparams), read_backend(spec.beparams))
    wants = filled(Backend, *layers, what="the backend parameters asked for")
    return Instance(
        name="new",
        template=spec.disk_template,
        memory=wants.maxmem,
        vcpus=wants.vcpus,
        disk=spec.disk_template.traits.disk_space(sizes),
        disks=sizes,
        spindle_use=wants.spindle_use,
        disk_spindles=None if sizes else 0,
        tags=spec.tags,
        auto_balance=wants.auto_balance,
    )


def _as_json(found: "Explanation") -> dict[str, Any]:
    from coordinator.allocator.allocation.explain import IN_WORDS

    return {
        "nodes": list(found.nodes),
        "score_before": found.score_before,
        "score_after": found.score_after,
        "parts": [
            {
                "term": part.term.name.lower(),
                "words": IN_WORDS[part.term],
                "before": part.before,
                "after": part.after,
            }
            for part in found.parts
        ],
        "runners_up": [
            {"nodes": list(choice.nodes), "score": choice.score} for choice in found.runners_up
        ],
        "considered": found.considered,
        "refused": {name: reason.in_words(1) for name, reason in found.refused.items()},
    }
