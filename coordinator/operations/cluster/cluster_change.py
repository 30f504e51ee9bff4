"""What an operator says of the cluster's parameters, and what they become."""

from typing import Annotated, Any

from common.durations import parse_duration
from common.messages import Order
from common.model.cluster import Cluster as ClusterRecord
from common.model.parameters import edited, edited_layers
from common.model.policy import edited_policy
from common.model.settings import Settings, read_settings
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import keep_for_cluster
from coordinator.operations.base import Operation
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
from coordinator.operations.fields import DiskParametersOption
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, confidential, hidden, option
from coordinator.operations.specs import read_backend
from coordinator.operations.steps.scripts import lost_parameters
from coordinator.state.config import Config
from coordinator.state.rows import Update
from coordinator.state.state import State

NEVER = "never"
_SWITCHES = ("self_repair", "confd_everywhere", "ganeti_paths")  # are kept as they are given


class ModifyClusterPlan(Order, kw_only=True):
    """Fields of the cluster's record that change, before and after."""

    before: dict[str, Any]
    after: dict[str, Any]
    is_confidential: bool = False  # something changes that is in no plan
    now: float


class ClusterChange(Operation[None, ModifyClusterPlan], kw_only=True):
    """An order to change the cluster's parameters, as it is given."""

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

    def changes(self, present: ClusterRecord) -> dict[str, Any]:
        """Return the fields of the cluster's record that are given, as they will be."""
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

    def keep_private(self, state: State) -> list[Update]:
        """Return what stores the parameters that nobody is shown."""
        if isinstance(self.osparams_private_cluster, str):
            raise lost_parameters()
        return [
            update
            for name, given in self.osparams_private_cluster.items()
            for update in keep_for_cluster(state, name, given)
        ]
