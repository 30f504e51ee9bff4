"""What options say of the moves that balancing may make."""

from collections.abc import Sequence

from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.options import Parsed
from coordinator.iallocator.names import common_suffix


def limits_of(cluster: Snapshot, options: Parsed) -> Limits:
    """Read the limits; instances are named in full, or without what all names end in."""
    suffix = common_suffix(cluster)

    def full(names: Sequence[str]) -> frozenset[str]:
        return frozenset(
            one.name
            for one in cluster.instances
            if one.name in names or one.name.removesuffix(suffix) in names
        )

    selected = options.select_instances
    return Limits(
        min_gain=options.min_gain,
        min_gain_limit=options.min_gain_limit,
        evacuate=options.evac_mode,
        disk_moves=not options.no_disk_moves,
        instance_moves=not options.no_instance_moves,
        restricted=bool(options.get("restricted_migration")),
        ignore_soft_errors=options.ignore_soft_errors,
        selected=None if selected is None else full(selected),
        excluded=full(options.exclude_instances),
    )
