"""Why no node can take an instance, in one sentence, with the figures of the nearest miss."""

from __future__ import annotations

from types import MappingProxyType

from common.errors import NoCapacity
from common.record import Record
from coordinator.allocator.policy import QUANTITIES, asked_amounts, check_policy
from coordinator.allocator.refusal import Reason, in_words, tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from common.names import NodeName
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.policy import InstancePolicy
    from coordinator.allocator.snapshot import Instance


_POLICY = frozenset((*(reason for reason, *_ in QUANTITIES), Reason.POLICY_TEMPLATE))


class Miss(Record):
    """What there is on a node of something that it lacks, and what is needed."""

    there: float
    needed: float
    what: str
    is_strict: bool = False  # more than that is needed
    is_unfit: bool = False  # it is not for such instances at all, and ``what`` says why

    def __str__(self) -> str:
        if self.is_unfit:
            return self.what
        more = "more than " if self.is_strict else ""
        return f"with {self.there:.12g} {self.what} where {more}{self.needed:.12g} are needed"

    @property
    def share(self) -> float:
        """How much is missing of what is needed."""
        return (self.needed - self.there) / max(1.0, self.needed)


def no_capacity(
    subject: str,
    model: ClusterModel,
    demand: Instance,
    refused: Mapping[NodeName, Reason],
    *,
    unevacuable: NodeName | None = None,
    missing: Mapping[NodeName, Miss] = MappingProxyType({}),
) -> NoCapacity:
    """Return the error that says why nothing fits.

    Its detail is ``refused``, the reason by node, and ``unevacuable`` if there is one.

    Args:
        subject: what the sentence begins with: "No node can take instance web1".
        model: the cluster.
        demand: what was asked for.
        refused: why each node cannot take it.
        unevacuable: a node that could not be emptied any more, if that is why.
        missing: of nodes that were not looked at, what they lack.
    """
    asked = {name: why for name, why in refused.items() if why is not Reason.RESTRICTED}
    left = asked | dict.fromkeys(missing, Reason.DISK)
    clauses = []
    for group, (names, reason) in _forbidding(model, demand, refused, missing).items():
        of_group = model.snapshot.groups[group]
        bounds = bounds_in_words(of_group.policy, demand, reason)
        clauses.append(f"the policy of group {of_group.name} {bounds}")
        left = {name: why for name, why in left.items() if name not in names}
    unsafe = [name for name, reason in left.items() if reason is Reason.REDUNDANCY]
    if unsafe and unevacuable is not None:
        nodes = f"{unsafe[0]} has" if len(unsafe) == 1 else f"{len(unsafe)} nodes have"
        culprit = "it" if unsafe == [unevacuable] else unevacuable
        clauses.append(f"{nodes} room, but {culprit} could then not be emptied onto others")
        left = {name: why for name, why in left.items() if name not in unsafe}
    elif found := _nearest(model, demand, left, missing):
        name, miss = found
        clauses.append(f"{name} comes nearest, {miss}")
        del left[name]
    if left or not clauses:
        clauses.append(in_words(tally(left.values())))
    return NoCapacity(
        f"{subject}: {'; '.join(clauses)}.",
        refused={name: reason.name.lower() for name, reason in refused.items()},
        **({} if unevacuable is None else {"unevacuable": unevacuable}),
    )


def _forbidding(
    model: ClusterModel,
    demand: Instance,
    refused: Mapping[NodeName, Reason],
    missing: Mapping[NodeName, Miss],
) -> dict[int, tuple[set[NodeName], Reason]]:
    """Return groups whose policy does not allow it, with their nodes and the reason.

    Of nodes that were not looked at, the policy was not asked yet.
    """
    found: dict[int, tuple[set[NodeName], Reason]] = {}
    for name in (*refused, *missing):
        group = model.group_of[model.index[name]]
        policy = model.snapshot.groups[group].policy
        reason = check_policy(policy, demand) if name in missing else refused[name]
        if reason in _POLICY:
            found.setdefault(group, (set(), reason))[0].add(name)
    return found


def _nearest(
    model: ClusterModel,
    demand: Instance,
    reasons: Mapping[NodeName, Reason],
    missing: Mapping[NodeName, Miss],
) -> tuple[NodeName, Miss] | None:
    """Return the node that lacks the smallest part of what is needed, if that can be said."""
    found = {
        name: missing.get(name) or _miss(model, model.index[name], reason, demand)
        for name, reason in reasons.items()
    }
    known = [(name, miss) for name, miss in found.items() if miss is not None]
    return min(known, key=lambda one: one[1].share, default=None)


def _miss(model: ClusterModel, node: int, reason: Reason, demand: Instance) -> Miss | None:
    row = model.rows[node]
    match reason:
        case Reason.MEMORY:
            return Miss(row.memory, demand.memory, "MiB of memory free", is_strict=True)
        case Reason.DISK:
            return Miss(row.disk, demand.disk, "MiB of disk space free", is_strict=True)
        case Reason.CPU:
            most = row.total_cpus * row.cpu_ratio
            left = max(0.0, most - row.cpus)
            return Miss(left, demand.vcpus, f"of {most:g} virtual processors left")
        case _:
            return None


def bounds_in_words(
    policy: InstancePolicy, demand: Instance, reason: Reason, *, exclusive: bool = False
) -> str:
    """Say what a policy allows, and what was asked for instead: a predicate."""
    if reason is Reason.POLICY_TEMPLATE:
        return f"allows {', '.join(policy.disk_templates)}, not {demand.template}"
    rows = zip(QUANTITIES, asked_amounts(demand, exclusive=exclusive), strict=True)
    ((field, what, amounts),) = [(*row[1:], asked) for row, asked in rows if row[0] is reason]
    ranges = (
        f"{getattr(bounds.min, field)} to {getattr(bounds.max, field)} {what}"
        for bounds in policy.minmax
    )
    asked = ("an unknown number" if each is None else str(each) for each in amounts)
    return f"allows {' or '.join(ranges)}, not {', '.join(asked)}"
