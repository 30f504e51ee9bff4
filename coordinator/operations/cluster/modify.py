"""Change the cluster's parameters."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import from_builtins, to_builtins
from common.model.cluster import Cluster as ClusterRecord
from common.model.os_name import read_os_name
from common.natural import natural_key
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.disks.volume_groups import check_has_group
from coordinator.operating_systems.parameters import DEFAULT, read_parameters
from coordinator.operations.base import operation
from coordinator.operations.cluster.cluster_change import ClusterChange, ModifyClusterPlan
from coordinator.operations.cluster.in_use import check_enabled, check_pools
from coordinator.operations.cluster.new_volume_group import check_volume_group
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import find_program
from coordinator.operations.step import Edit, Step, record
from coordinator.operations.steps.definitions import check_is_parameter
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State


@operation("OP_CLUSTER_SET_PARAMS")
class ModifyCluster(ClusterChange, kw_only=True):
    """Change the cluster's parameters.

    In lists of parameters the value “default” takes one away; an empty name of an allocator has
    nodes named.
    """

    async def prepare(self, cluster: Cluster, _: None) -> ModifyClusterPlan:
        present = cluster.config.cluster
        after = self.changes(present)
        names = list(filter(None, [after.get("default_iallocator")]))
        names += [each for many in after.get("default_iallocators", {}).values() for each in many]
        for name in names:
            find_program(name, cluster.placing.search_path)
        check_enabled(cluster.config, after)
        if not isinstance(self.osparams_private_cluster, str):
            for name, given in self.osparams_private_cluster.items():
                read_os_name(name)
                read_parameters(given, what=f"the private parameters of {name}")
        await self._check_os_parameters(cluster)
        changed = cluster.config.apply([Put(_with(present, after))])
        check_pools(cluster.config, changed)
        if {"volume_group_name", "enabled_disk_templates"} & after.keys():
            check_has_group(changed.cluster)
        if self.vg_name:
            await check_volume_group(cluster, self.vg_name)
        check_parameters(bad_parameters(changed), known=bad_parameters(cluster.config))
        if lost := sorted(_outside(changed) - _outside(cluster.config), key=natural_key):
            cluster.log(
                f"The policy does not allow {', '.join(lost)} any more; that matters when they are "
                "changed or made anew."
            )
        before = {field: getattr(present, field) for field in after}
        if before == after and not self.osparams_private_cluster:
            raise InvalidRequest("Nothing to change: say which parameter gets which value.")
        return ModifyClusterPlan(
            before=before,
            after=after,
            is_confidential=bool(self.osparams_private_cluster),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: ModifyClusterPlan) -> Iterator[Step]:  # noqa: ARG002
        changed = [field.removesuffix("_s").replace("_", " ") for field in sorted(plan.after)]
        if plan.after:
            yield record(
                f"change {', '.join(changed)}",
                _set(plan.after, plan.now),
                undo=_set(plan.before, plan.now),
            )
        if plan.is_confidential:
            # What they were before is in no journal, so they cannot become that again.
            yield record(
                "change private parameters of operating systems",
                self.keep_private,
                point_of_no_return=True,
            )

    async def _check_os_parameters(self, cluster: Cluster) -> None:
        """Refuse what an operating system does not know, as the master's node has it."""
        master = cluster.config.nodes[cluster.config.cluster.master]
        private = self.osparams_private_cluster
        for layers in (self.osparams, {} if isinstance(private, str) else private):
            for os, given in (layers or {}).items():
                names = [name for name, value in given.items() if value != DEFAULT]
                if names:
                    await check_is_parameter(cluster, master, os, names)


def _outside(config: Config) -> set[str]:
    """Return the names of instances that the policies of their groups do not allow."""
    from coordinator.operations.placement.fit import outside_policy  # commands have no use for it

    return set(outside_policy(config))


def _set(fields: dict[str, Any], now: float) -> Edit:
    def edit(state: State) -> list[Update]:
        present = state.config.cluster
        changed = _with(present, fields)
        return [Put(replace(changed, mtime=now, serial_no=present.serial_no + 1))]

    return edit


def _with(present: ClusterRecord, fields: dict[str, Any]) -> ClusterRecord:
    """Return the record with some fields changed; from the journal, lists come for tuples."""
    values: dict[str, Any] = to_builtins(present) | to_builtins(fields)
    return from_builtins(values, ClusterRecord, what="the cluster's record")
