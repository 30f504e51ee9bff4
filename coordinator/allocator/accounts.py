"""The books of nodes: what each has, what is taken, what is promised."""

from dataclasses import dataclass, fields

from coordinator.allocator.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Accounts:
    """Books of some nodes, one array element each; memory and disk in MiB.

    All arrays have the same length: that of the whole cluster, of the candidates, or 1.
    The ``next_`` fields also count forthcoming instances, and start from what nodes
    measured rather than from what is recorded.

    Attributes:
        cpu_ratio: virtual processors allowed per real one; negative is no limit.
        spindle_limit: spindle use allowed.
        exclusive: whether spindles belong to one instance each; then free ones are counted
            instead of disk space and spindle use.
        memory: not allocated; never more than what the node measured at the start.
        reserved: kept free for the peer whose failure would bring most.
        fails_n1: whether ``reserved`` is more than there is.
        primaries, secondaries: number of real instances.
        conflicts: exclusion tags that are there more often than once, counted above one.
        location: location tags that primaries share with their secondary, plus wishes for
            a location that are not met.
    """

    total_memory: Floats
    total_disk: Floats
    total_cpus: Floats
    cpu_ratio: Floats
    spindle_limit: Floats
    total_spindles: Floats
    cpu_speed: Floats
    exclusive: Bools
    offline: Bools

    memory: Ints
    reserved: Ints
    fails_n1: Bools
    disk: Ints
    cpus: Ints
    spindles: Ints
    free_spindles: Ints
    primaries: Ints
    secondaries: Ints
    load_cpu: Floats
    load_memory: Floats
    load_disk: Floats
    load_network: Floats
    conflicts: Ints
    location: Ints
    next_memory: Ints
    next_disk: Ints
    next_cpus: Ints
    next_spindles: Ints
    next_free_spindles: Ints

    def at(self, nodes: Ints) -> "Accounts":
        """The books of some of these nodes, as copies."""
        return Accounts(*(getattr(self, field.name)[nodes] for field in fields(self)))

    def put(self, nodes: Ints, other: "Accounts") -> None:
        """Overwrite the books of ``nodes``; for a simulation on its own copy."""
        for field in fields(self):
            getattr(self, field.name)[nodes] = getattr(other, field.name)
