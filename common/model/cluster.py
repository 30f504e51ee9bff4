"""The cluster itself: one object."""

from typing import Any

from common.model.entity import Entity
from common.model.policy import InstancePolicy
from common.model.stored import Part
from common.model.template import ENABLED_AT_FIRST
from common.names import ClusterId, ClusterName, JobId, KeyId, NodeId


class Override(Part, kw_only=True, omit_defaults=True):
    """A time the operator's word replaced the quorum (``--no-voting --yes-do-it``)."""

    time: float  # seconds since 1970
    epoch: int
    master: NodeId
    unheard: tuple[str, ...] = ()  # names of the nodes that had not answered
    last_job: JobId = JobId(0)  # up to here, numbers may have been given in states set aside


class Cluster(Entity, kw_only=True):
    uuid: ClusterId
    name: ClusterName
    master: NodeId
    candidate_pool_size: int = 5
    max_running_jobs: int = 20
    enabled_hypervisors: tuple[str, ...] = ("kvm",)
    enabled_disk_templates: tuple[str, ...] = tuple(map(str, ENABLED_AT_FIRST))
    default_iallocator: str = "hail"  # "": none
    default_iallocators: dict[str, tuple[str, ...]] = {}  # by type of request, tried in order
    default_iallocator_params: dict[str, Any] = {}  # options for allocators, without dashes
    mac_prefix: str = "aa:00:00"
    master_ip: str = ""  # goes with the mastership; "": nothing does
    master_netdev: str = ""  # of the master, where that address is
    master_netmask: int | None = None  # length of its prefix; None: the address is alone
    master_ip_active: bool = True
    uid_pool: tuple[tuple[int, int], ...] = ()  # for guests with security_model=pool
    volume_group_name: str = ""  # of each node; where disks are logical volumes
    file_storage_dir: str = ""
    shared_file_storage_dir: str = ""
    gluster_storage_dir: str = ""  # where each node has the volume mounted
    beparams: dict[str, Any] = {}
    hvparams: dict[str, dict[str, Any]] = {}
    nicparams: dict[str, Any] = {}
    ndparams: dict[str, Any] = {}
    diskparams: dict[str, dict[str, Any]] = {}  # by template
    hidden_os: tuple[str, ...] = ()  # names of definitions that are in no list
    blacklisted_os: tuple[str, ...] = ()  # that nobody may install
    os_hvp: dict[str, dict[str, dict[str, Any]]] = {}  # by definition, then by hypervisor
    osparams: dict[str, dict[str, str]] = {}  # by definition, or with a variant
    ipolicy: InstancePolicy = InstancePolicy()
    archive_jobs_after_s: float = 6 * 3600.0  # since they ended
    delete_jobs_after_s: float | None = 21 * 86_400.0  # from the archive; None: never
    queue_drained: bool = False
    watcher_pause: float | None = None  # seconds since 1970
    self_repair: bool = False  # of storage, by the watcher
    maintain_node_health: bool = False  # it has dead nodes switched off and marked offline
    enabled_user_shutdown: bool = False  # what its user has turned off stays so
    distributed_files: tuple[str, ...] = ()  # of the master, that are to be the same on all nodes
    confd_everywhere: bool = False  # else on master candidates
    ganeti_paths: bool = False  # nodes have links where Ganeti's programs look
    overrides: tuple[Override, ...] = ()
    revoked_keys: tuple[KeyId, ...] = ()  # of an older version, until one more is revoked
