"""All checks, in the order in which they are shown: of the configuration, and of each group."""

from collections.abc import Callable, Collection, Iterator, Mapping

from coordinator.checks.cluster import check_references, check_roles
from coordinator.checks.disks import (
    check_images,
    check_left_over,
    check_missing,
    check_missing_snapshots,
)
from coordinator.checks.exclusive import (
    check_apart,
    check_instances_apart,
    check_physical_volumes,
    check_sizes_in_groups,
)
from coordinator.checks.finding import Finding, Seen
from coordinator.checks.instances import (
    check_silence,
    check_space,
    check_states,
    check_strangers,
    check_tpms,
    check_whereabouts,
)
from coordinator.checks.mirrors import check_devices, check_mirrors, check_modules
from coordinator.checks.nodes import (
    check_answers,
    check_certificates,
    check_clocks,
    check_distributed_files,
    check_files,
    check_master_address,
    check_obedience,
    check_programs,
    check_rosters,
    check_setup,
    check_versions,
)
from coordinator.checks.operating_systems import check_systems
from coordinator.checks.parameters import check_stored_parameters
from coordinator.checks.placement import (
    check_exclusion,
    check_flags,
    check_nodes_of_instances,
    check_policies,
    check_spare_memory,
)
from coordinator.checks.providers import check_providers
from coordinator.checks.volumes import (
    check_groups,
    check_lost_snapshots,
    check_orphans,
    check_volumes,
)

Check = Callable[[Seen], Iterator[Finding]]

OF_CONFIGURATION: dict[str, tuple[Check, ...]] = {
    "Verifying the configuration": (
        check_references,
        check_roles,
        check_flags,
        check_stored_parameters,
    ),
}
OF_GROUP: dict[str, tuple[Check, ...]] = {
    "Verifying nodes": (
        check_answers,
        check_versions,
        check_clocks,
        check_certificates,
        check_setup,
        check_programs,
        check_systems,
        check_modules,
        check_providers,
    ),
    "Verifying mastership and copies of the state": (
        check_obedience,
        check_rosters,
        check_files,
        check_distributed_files,
        check_master_address,
    ),
    "Verifying instances": (
        check_states,
        check_silence,
        check_space,
        check_tpms,
        check_whereabouts,
        check_strangers,
    ),
    "Verifying places": (
        check_policies,
        check_nodes_of_instances,
        check_exclusion,
        check_instances_apart,
        check_spare_memory,
    ),
    "Verifying disks": (
        check_missing,
        check_missing_snapshots,
        check_images,
        check_left_over,
        check_groups,
        check_physical_volumes,
        check_sizes_in_groups,
        check_apart,
        check_volumes,
        check_lost_snapshots,
        check_orphans,
        check_mirrors,
        check_devices,
    ),
}

SKIPPABLE: dict[str, tuple[Check, ...]] = {
    "hvparam_assessment": (),  # is part of what nodes say of themselves
    "nplusone_mem": (check_spare_memory,),
}
"""What can be left out, by Ganeti's names."""


def without(
    checks: Mapping[str, tuple[Check, ...]], skipped: Collection[str]
) -> dict[str, tuple[Check, ...]]:
    """Return the checks without those that are to be left out."""
    left_out = {check for name in skipped for check in SKIPPABLE[name]}
    return {
        title: tuple(check for check in several if check not in left_out)
        for title, several in checks.items()
    }
