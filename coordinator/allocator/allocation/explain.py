"""Why these nodes: what a placement does to each part of the score, and what else there was."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.names import NodeName
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_instance
from coordinator.allocator.model.state import standing_of
from coordinator.allocator.model.terms import Term
from coordinator.allocator.request import Allocate

IN_WORDS = {
    Term.FREE_MEM_CV: "free memory differs between nodes",
    Term.FREE_DISK_CV: "free disk space differs between nodes",
    Term.N1_CNT: "instances on nodes without memory for a failover",
    Term.RESERVED_MEM_CV: "memory kept free for failovers differs between nodes",
    Term.OFFLINE_ALL_CNT: "instances with a node that is offline",
    Term.OFFLINE_PRI_CNT: "instances on nodes that are offline",
    Term.VCPU_RATIO_CV: "virtual processors differ between nodes",
    Term.CPU_LOAD_CV: "processor load differs between nodes",
    Term.MEM_LOAD_CV: "memory load differs between nodes",
    Term.DISK_LOAD_CV: "disk load differs between nodes",
    Term.NET_LOAD_CV: "network load differs between nodes",
    Term.PRI_TAGS_SCORE: "instances that should be apart share a node",
    Term.SPINDLES_CV: "use of spindles differs between nodes",
    Term.FREE_MEM_CV_FORTH: "free memory will differ, with reservations",
    Term.FREE_DISK_CV_FORTH: "free disk space will differ, with reservations",
    Term.VCPU_RATIO_CV_FORTH: "virtual processors will differ, with reservations",
    Term.SPINDLES_CV_FORTH: "use of spindles will differ, with reservations",
    Term.LOCATION_SCORE: "both nodes of an instance at one location, or none where it is wanted",
    Term.LOCATION_EXCLUSION_SCORE: "instances that should be apart share a location",
    Term.RESERVED_MEM_RTOTAL: "memory kept free for failovers",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one term adds to the score, with its weight, before and after."""

    term: Term
    before: float
    after: float


def parts_of(
    model: ClusterModel, request: Allocate, nodes: tuple[NodeName, ...]
) -> tuple[Part, ...]:
    """What an instance does to the score on ``nodes``: parts that are not 0, the largest first.

    They add up to the scores, but for rounding, of all nodes or those of the group asked for.
    """
    where = tuple(model.index[name] for name in nodes)
    taken = with_instance(model, request.instance, where)
    scored = _scored(model, request)
    before, after = (standing_of(one, scored).parts() for one in (model, taken))
    parts = [Part(term, before[term], after[term]) for term in Term if before[term] or after[term]]
    return tuple(sorted(parts, key=lambda part: -max(part.before, part.after)))


def _scored(model: ClusterModel, request: Allocate) -> Sequence[int]:
    return range(model.size) if request.group is None else model.groups[request.group]
