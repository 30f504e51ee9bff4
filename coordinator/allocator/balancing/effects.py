"""What instances that come to nodes do to the spreads there."""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.terms import WEIGHTS, Term


@dataclass(slots=True)
class Spread:
    """One spread for all instances: amounts times factors of nodes.

    Attributes:
        weight: of all terms that are equal to it.
        as_primary, as_secondary: per instance.
        scale, centred: per target.
        exclusive_scale: where disks take whole spindles.
    """

    term: Term
    weight: float
    as_primary: Floats
    as_secondary: Floats
    scale: Floats
    centred: Floats
    exclusive_scale: Floats | None


def distinct_spreads(state: GroupState, score: Score, some: Ints, targets: Ints) -> list[Spread]:
    """Spreads that targets change, equal ones once with their weights added."""
    demands, resources = state.demands, state.resources.at(targets)
    with np.errstate(divide="ignore"):
        per_memory = 1 / resources.total_memory
        per_disk = np.where(resources.disk_unit == 0, 0.0, 1 / resources.disk_unit)
        per_cpu = 1 / resources.total_cpus / resources.speed
        per_spindle = np.where(resources.exclusive, 0.0, 1 / resources.spindle_limit)
    shared, ones = np.where(resources.exclusive, 0.0, per_disk), np.ones(len(targets))
    none = np.zeros(len(some), dtype=np.int64)
    load = demands.load[:, some]
    memory, cpus, disk = demands.memory[some], demands.cpus[some], demands.disk[some]
    next_disk, spindles = demands.next_disk[some], demands.spindles[some]
    next_spindles = demands.next_spindles[some]
    rows: list[tuple[Term, Ints | Floats, Ints | Floats, Floats]] = [
        (Term.FREE_MEM_CV, -memory, none, per_memory),
        (Term.FREE_DISK_CV, -disk, -disk, shared),
        (Term.VCPU_RATIO_CV, cpus, none, per_cpu),
        (Term.CPU_LOAD_CV, load[0], none, ones),
        (Term.MEM_LOAD_CV, load[1], none, ones),
        (Term.DISK_LOAD_CV, load[2], load[2], ones),
        (Term.NET_LOAD_CV, load[3], none, ones),
        (Term.SPINDLES_CV, spindles, spindles, per_spindle),
        (Term.FREE_MEM_CV_FORTH, -demands.next_memory[some], none, per_memory),
        (Term.FREE_DISK_CV_FORTH, -next_disk, -next_disk, shared),
        (Term.VCPU_RATIO_CV_FORTH, demands.next_cpus[some], none, per_cpu),
        (Term.SPINDLES_CV_FORTH, next_spindles, next_spindles, per_spindle),
    ]
    found: dict[bytes, Spread] = {}
    for term, first, second, scale in rows:
        as_primary, as_secondary = first.astype(np.float64), second.astype(np.float64)
        whole = score.before[term, score.online]
        is_disk = term in {Term.FREE_DISK_CV, Term.FREE_DISK_CV_FORTH}
        key = bytes([is_disk]) + b"".join(
            part.tobytes() for part in (as_primary, as_secondary, scale, whole)
        )
        if key in found:
            found[key].weight += WEIGHTS[term]
            continue
        found[key] = Spread(
            term, WEIGHTS[term], as_primary, as_secondary, scale,
            score.before[term, targets] - score.means[term],
            per_disk * resources.exclusive if is_disk and resources.exclusive.any() else None,
        )  # fmt: skip
    return list(found.values())
