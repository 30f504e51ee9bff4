"""Change the cluster's parameters."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.durations import parse_duration
from common.errors import InvalidRequest
from common.messages import Order, from_builtins, to_builtins
from common.model.cluster import Cluster as ClusterRecord
from common.model.os_name import read_os_name
from common.model.parameters import edited, edited_layers
from common.model.policy import edited_policy
from common.model.settings import Settings, read_settings
from common.natural import natural_key
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.disks.volume_groups import check_has_group
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import keep_for_cluster, read_parameters
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.default_allocators import edited_options, edited_requests
from coordinator.operations.cluster.fields import (
    AllocatorOptions,
    BackendDefaults,
    ClusterPolicyOption,
    DefaultAllocator,
    DistributedFiles,
    EnabledHypervisors,
    EnabledTemplates,
    FileDirectory,
    GlusterDirectory,
    HypervisorDefaults,
    MacPrefix,
    MaintainedHealth,
    MasterDevice,
    MasterIp,
    MasterNetmask,
    NicDefaults,
    NodeDefaults,
    PoolSize,
    SharedFileDirectory,
    UserShutdown,
    VolumeGroup,
)
from coordinator.operations.cluster.in_use import check_enabled, check_pools
from coordinator.operations.cluster.new_volume_group import check_volume_group
from coordinator.operations.cluster.os_settings import (
    OsListing,
    edited_hypervisor_parameters,
    edited_names,
    edited_os_parameters,
)
from coordinator.operations.cluster.uid_pool import (
    AddUids,
    RemoveUids,
    UidPoolOption,
    edited_uid_pool,
)
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import DiskParametersOption
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, confidential, hidden, option
from coordinator.operations.placement.allocators import find_program
from coordinator.operations.specs import read_backend
from coordinator.operations.step import Edit, Step, record
from coordinator.operations.steps.scripts import lost_parameters
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State

NEVER = "never"
_SWITCHES = ("self_repair", "confd_everywhere", "ganeti_paths")  # are kept as they are given


class ModifyClusterPlan(Order, kw_only=True):
    """Fields of the cluster's record that change, before and after."""

    before: dict[str, Any]
    after: dict[str, Any]
    is_confidential: bool = False  # something changes that is in no plan
    now: float


@operation("OP_CLUSTER_SET_PARAMS")
class ModifyCluster(Operation[None, ModifyClusterPlan], kw_only=True):
    """Change the cluster's parameters.

    In lists of parameters the value “default” takes one away; an empty name of an allocator has
    nodes named.
    """

    default_iallocator: DefaultAllocator = None
    default_iallocators: Annotated[
        dict[str, str | list[str]] | None,
        option(
            "--default-iallocators",
            syntax=Syntax.KEYVAL,
            metavar="REQUEST=NAME[:NAME…],…",
            help="for one kind of request (allocate, relocate, node-evacuate, change-group, "
            "multi-allocate), tried in this order; “none”: one has to be named, “default”: as "
            "for all",
        ),
    ] = None
    default_iallocator_params: AllocatorOptions = None
    max_running_jobs: Annotated[
        int | None, option("--max-running-jobs", metavar="N", help="how many run at once")
    ] = None
    self_repair: Annotated[
        bool | None,
        option(
            "--self-repair",
            help="whether the watcher has a node do without devices that it has lost",
            syntax=Syntax.YES_NO,
        ),
    ] = None
    maintain_node_health: MaintainedHealth = None
    confd_everywhere: Annotated[
        bool | None,
        option(
            "--confd-everywhere",
            help="whether gantry-confd answers on all nodes, and not on master candidates alone",
            syntax=Syntax.YES_NO,
        ),
    ] = None
    ganeti_paths: Annotated[
        bool | None,
        option(
            "--ganeti-paths",
            help="whether nodes have the socket, ssconf and confd's key where Ganeti's programs "
            "look, too",
            syntax=Syntax.YES_NO,
        ),
    ] = None
    archive_jobs_after: Annotated[
        str | None,
        option(
            "--archive-jobs-after",
            metavar="TIME",
            help="when jobs that have ended are put out of sight, as in 6h",
        ),
    ] = None
    delete_jobs_after: Annotated[
        str | None,
        option(
            "--delete-jobs-after",
            metavar="TIME",
            help="when archived jobs are deleted, as in 21d; “never”: they stay",
        ),
    ] = None

    candidate_pool_size: PoolSize = None
    mac_prefix: MacPrefix = None
    distributed_files: DistributedFiles = None
    master_ip: MasterIp = None
    master_netdev: MasterDevice = None
    master_netmask: MasterNetmask = None
    uid_pool: UidPoolOption = None
    enabled_user_shutdown: UserShutdown = None
    add_uids: AddUids = None
    remove_uids: RemoveUids = None
    enabled_hypervisors: EnabledHypervisors = None
    enabled_disk_templates: EnabledTemplates = None
    vg_name: VolumeGroup = None
    file_storage_dir: FileDirectory = None
    shared_file_storage_dir: SharedFileDirectory = None
    gluster_storage_dir: GlusterDirectory = None
    hvparams: HypervisorDefaults = None
    beparams: BackendDefaults = None
    nicparams: NicDefaults = None
    ndparams: NodeDefaults = None
    diskparams: DiskParametersOption = None
    ipolicy: ClusterPolicyOption = None

    os_hvp: Annotated[
        dict[str, dict[str, dict[str, Any]]] | None,
        hidden("hypervisor parameters by operating system; “gnt-os modify”"),
    ] = None
    osparams: Annotated[
        dict[str, dict[str, Any]] | None,
        hidden("parameters of operating systems; “gnt-os modify”"),
    ] = None
    osparams_private_cluster: Annotated[
        dict[str, dict[str, Any]] | str,
        confidential("parameters of operating systems that nobody is shown; “gnt-os modify”"),
    ] = {}
    hidden_os: Annotated[
        tuple[tuple[OsListing, str], ...] | None,
        hidden("names to add or remove; hidden ones are in no list"),
    ] = None
    blacklisted_os: Annotated[
        tuple[tuple[OsListing, str], ...] | None,
        hidden("names to add or remove; blacklisted ones are not installed"),
    ] = None

    def is_for_root(self) -> bool:
        return bool(self.maintain_node_health)  # nodes become candidates in the place of others

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002
        return wanted(parameters=True)

    async def prepare(self, cluster: Cluster, _: None) -> ModifyClusterPlan:
        present = cluster.config.cluster
        after = self._changes(present)
        names = list(filter(None, [after.get("default_iallocator")]))
        names += [each for many in after.get("default_iallocators", {}).values() for each in many]
        for name in names:
            find_program(name, cluster.placing.search_path)
        check_enabled(cluster.config, after)
        if not isinstance(self.osparams_private_cluster, str):
            for name, given in self.osparams_private_cluster.items():
                read_os_name(name)
                read_parameters(given, what=f"the private parameters of {name}")
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
                self._keep_private,
                point_of_no_return=True,
            )

    def _changes(self, present: ClusterRecord) -> dict[str, Any]:
        given = {field: getattr(self, field, None) for field in Settings.__struct_fields__}
        given["volume_group_name"] = self.vg_name
        changes = read_settings(given).given() | self._layers(present) | self._of_os(present)
        if (self.uid_pool, self.add_uids, self.remove_uids) != (None, None, None):
            changes["uid_pool"] = edited_uid_pool(
                present, self.uid_pool, self.add_uids, self.remove_uids
            )
        if self.ipolicy is not None:
            changes["ipolicy"] = edited_policy(present.ipolicy, self.ipolicy)
        if self.default_iallocator is not None:
            changes["default_iallocator"] = self.default_iallocator
        if self.default_iallocators is not None:
            requests = edited_requests(present, self.default_iallocators)
            changes["default_iallocators"] = requests
        if self.default_iallocator_params is not None:
            options = edited_options(
                present.default_iallocator_params, self.default_iallocator_params
            )
            changes["default_iallocator_params"] = options
        for switch in _SWITCHES:
            if (is_on := getattr(self, switch)) is not None:
                changes[switch] = is_on
        if self.archive_jobs_after is not None:
            changes["archive_jobs_after_s"] = parse_duration(self.archive_jobs_after)
        if self.delete_jobs_after is not None:
            never = self.delete_jobs_after == NEVER
            after_s = None if never else parse_duration(self.delete_jobs_after)
            changes["delete_jobs_after_s"] = after_s
        return changes

    def _of_os(self, present: ClusterRecord) -> dict[str, Any]:
        """Return what changes about operating systems, as it will be."""
        changes: dict[str, Any] = {}
        if self.os_hvp is not None:
            changes["os_hvp"] = edited_hypervisor_parameters(present, self.os_hvp)
        if self.osparams is not None:
            changes["osparams"] = edited_os_parameters(present, self.osparams)
        for field in ("hidden_os", "blacklisted_os"):
            if (listed := getattr(self, field)) is not None:
                changes[field] = edited_names(getattr(present, field), listed)
        return changes

    def _keep_private(self, state: State) -> list[Update]:
        if isinstance(self.osparams_private_cluster, str):
            raise lost_parameters()
        return [
            update
            for name, given in self.osparams_private_cluster.items()
            for update in keep_for_cluster(state, name, given)
        ]

    def _layers(self, present: ClusterRecord) -> dict[str, Any]:
        """Return the layers of parameters that change, as they will be."""
        changes: dict[str, Any] = {}
        for field in ("hvparams", "diskparams"):
            if (layers := getattr(self, field)) is not None:
                changes[field] = edited_layers(getattr(present, field), layers)
        if self.beparams is not None:
            changes["beparams"] = edited(present.beparams, read_backend(self.beparams))
        for field in ("nicparams", "ndparams"):
            if (given := getattr(self, field)) is not None:
                changes[field] = edited(getattr(present, field), given)
        return changes


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
