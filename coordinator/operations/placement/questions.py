"""What could be placed, and why there: questions to the allocator that change nothing."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, assert_never, cast

from msgspec import Meta

from common.messages import Order, from_builtins
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.parameters import Backend, filled, sound
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, InstanceName, NodeId, NodeName
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate
from coordinator.disks.devices import Devices
from coordinator.disks.kind import NewDisk
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.disks.parameters import disk_parameters
from coordinator.iallocator.answers import Moves, Options
from coordinator.iallocator.requests import BalanceCluster
from coordinator.locks.names import Owner
from coordinator.operations.devices import DiskRequest
from coordinator.operations.placement.built_in import request_for
from coordinator.operations.placement.look import Look, take_look
from coordinator.operations.placement.promises import PlannedInstance, naming
from coordinator.operations.placement.shared import Placing
from coordinator.operations.placement.space import counts, nodes_but, shortages
from coordinator.operations.specs import read_backend
from coordinator.state.config import Config

_Count = Annotated[int, Meta(ge=0)]


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

    limit: _Count | None = None


class BalanceQuestion(Order, tag_field="type", tag="balance"):
    """Which moves would make it better?

    Attributes:
        max_operations: at most so many moves; None for all that are worth it.
        group: name or UUID; None for all groups.
    """

    max_operations: _Count | None = None
    group: str | None = None


Question = AllocateQuestion | CapacityQuestion | BalanceQuestion


def read_question(words: Any) -> Question:
    """Read what a client asks.

    Raises:
        InvalidRequest: says which field is wrong.
    """
    kind = cast("type[Question]", Question)  # msgspec takes unions, too
    return from_builtins(words, kind, what="the question to the allocator")


async def look_to_answer(
    placing: Placing, config: Callable[[], Config], question: Question
) -> Look:
    """Look at the cluster, and at pools that nobody but a question names.

    One question at a time; ``config`` gives the newest configuration.

    Raises:
        NoCapacity: no node answers.
        NotFound: the group does not exist.
        InvalidRequest: a parameter is unknown or does not fit.
    """
    look = await take_look(placing, config)
    if isinstance(question, BalanceQuestion):
        return look
    named = naming(_planned(look.config, question))
    if look.tells_of(named.pools):
        return look
    asker = Owner("a question to the allocator")
    placing.promises.make(asker, [named])
    try:
        return await take_look(placing, config, but=asker, max_age_s=0.0)
    finally:
        placing.promises.release(asker)


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
    """Choose nodes, and say why: parts of the score before and after, with the words for terms.

    Raises:
        NotFound: the group does not exist.
        InvalidRequest: a parameter is unknown or does not fit.
    """
    from coordinator.allocator.allocation.explain import IN_WORDS, parts_of
    from coordinator.allocator.allocation.place import survey
    from coordinator.allocator.model.cluster_model import ClusterModel

    planned = _planned(look.config, question)
    look = look.about(planned.disks)
    model, request = ClusterModel(look.snapshot), _request(look, planned)
    found = survey(model, request)
    best = found.choices[:1]
    scored = best if not request.by_loss else ()
    return {
        "nodes": list(found.nodes),
        "score_before": None if request.by_loss else found.score_before,
        "score_after": scored[0].score if scored else None,
        "parts": [
            {
                "term": part.term.name.lower(),
                "words": IN_WORDS[part.term],
                "before": part.before,
                "after": part.after,
            }
            for part in (parts_of(model, request, found.nodes) if scored else ())
        ],
        "runners_up": [
            {"nodes": list(choice.nodes), "score": choice.score} for choice in found.choices[1:]
        ],
        "considered": found.considered,
        "refused": _in_words(look, planned, found.refused),
    }


def _count(look: Look, question: CapacityQuestion) -> dict[str, Any]:
    """Count: ``count``, the nodes of each, and why a node takes no more."""
    from coordinator.allocator.allocation.capacity import MOST, room_for
    from coordinator.allocator.model.cluster_model import ClusterModel

    limit = MOST if question.limit is None else min(question.limit, MOST)
    planned = _planned(look.config, question)
    look = look.about(planned.disks)
    request, space = _request(look, planned), counts(look, planned.disks)
    is_shared = question.disk_template.traits.is_external
    model = ClusterModel(look.snapshot)
    room = room_for(model, request, limit, space=space, is_shared=is_shared)
    return {
        "count": len(room.placements),
        "placements": [list(nodes) for nodes in room.placements],
        "refused": _in_words(look, planned, room.refused),
    }


def _balance(look: Look, question: BalanceQuestion) -> dict[str, Any]:
    """Find moves: ``moves`` as name, group and nodes afterwards, ``jobs`` as opcodes, ``info``."""
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.iallocator.balancing import balance

    group = None if question.group is None else look.config.group(question.group).uuid
    request = BalanceCluster(question.max_operations, group)
    found = balance(ClusterModel(look.snapshot), request, Options())
    moves: Moves = found.result
    return {
        "moves": [[name, group, list(nodes)] for name, group, nodes in moves.moved],
        "jobs": [list(job) for job in moves.jobs],
        "info": found.info,
    }


def _request(look: Look, planned: PlannedInstance) -> Allocate:
    among = nodes_but(look, shortages(look, planned))
    return request_for(look, planned, among)


def _planned(config: Config, spec: InstanceSpec) -> PlannedInstance:
    """Return the instance that might be."""
    cluster = config.cluster
    check_enabled(cluster, spec.disk_template)
    kind, uuid = kind_of(spec.disk_template), InstanceId("new")
    beparams, usual = read_backend(spec.beparams), sound(Backend, cluster.beparams)
    filled(Backend, usual, beparams, what="the backend parameters asked for")
    none_taken = Devices((), str)  # what is asked about is not made
    group = None if spec.group is None else config.group(spec.group)
    parameters = disk_parameters(config, group, spec.disk_template)
    disks = []
    for number, disk in enumerate(spec.disks):
        kind.check_wish(disk)
        new = NewDisk(uuid, DiskId(f"{number}"), (), none_taken, disk, parameters)
        backing = kind.new_backing(cluster, new)
        disks.append(
            Disk(uuid=new.disk, size=disk.size_mib, backing=backing, spindles=disk.spindle_count)
        )
    instance = Instance(
        uuid=uuid,
        name=InstanceName("new"),
        primary_node=NodeId(""),
        admin_state=AdminState.UP,
        hypervisor=cluster.enabled_hypervisors[0],
        disk_template=spec.disk_template,
        beparams=beparams,
        tags=spec.tags,
    )
    return PlannedInstance(instance, tuple(disks), group=group.uuid if group else None)


def _in_words(
    look: Look, planned: PlannedInstance, refused: Mapping[NodeName, Reason]
) -> dict[str, str]:
    lacking = shortages(look, planned)
    # Who lacks nothing yet, and is not asked any more, has no space for another one.
    words = {Reason.RESTRICTED: "has no space left for the disks of another one"}
    return {
        name: str(lacking.get(name) or words.get(why) or why.in_words(1))
        for name, why in refused.items()
    }
