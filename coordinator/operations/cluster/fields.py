"""Fields of the cluster itself, spelled the same when it is made and when it is changed."""

from typing import Annotated, Any

from coordinator.operations.parameter import Syntax, option

DefaultAllocator = Annotated[
    str | None,
    option("-I", "--default-iallocator", metavar="NAME", help="chooses nodes where none is named"),
]
AllocatorOptions = Annotated[
    dict[str, Any] | None,
    option(
        "--default-iallocator-params",
        syntax=Syntax.KEYVAL,
        help="options that every allocator is given, without dashes; “default” takes one away",
    ),
]
PoolSize = Annotated[
    int | None,
    option("-C", "--candidate-pool-size", metavar="N", help="how many nodes hold the state"),
]
MacPrefix = Annotated[
    str | None, option("-m", "--mac-prefix", metavar="XX:XX:XX", help="of new nics")
]
MasterIp = Annotated[
    str | None,
    option(
        "--master-ip",
        syntax=Syntax.ADDRESS,
        help="address that goes with the mastership; “” for none",
    ),
]
MasterDevice = Annotated[
    str | None,
    option("--master-netdev", metavar="DEVICE", help="network device of nodes for that address"),
]
MasterNetmask = Annotated[
    int | None,
    option("--master-netmask", metavar="BITS", help="length of its network's prefix (all bits)"),
]
DistributedFiles = Annotated[
    tuple[str, ...] | None,
    option(
        "--distributed-files",
        syntax=Syntax.LIST,
        metavar="PATH,…",
        help="of the master, for “redist-conf” to copy to all nodes, where their root allows it; "
        "“” for none",
    ),
]
UserShutdown = Annotated[
    bool | None,
    option(
        "--user-shutdown",
        syntax=Syntax.YES_NO,
        help="whether guests with user_shutdown=yes may turn themselves off",
    ),
]
EnabledHypervisors = Annotated[
    tuple[str, ...] | None,
    option("--enabled-hypervisors", syntax=Syntax.LIST, help="the preferred one first"),
]
EnabledTemplates = Annotated[
    tuple[str, ...] | None,
    option("--enabled-disk-templates", syntax=Syntax.LIST, help="the preferred one first"),
]
VolumeGroup = Annotated[
    str | None,
    option("--vg-name", metavar="NAME", help="volume group of each node, where disks are volumes"),
]
FileDirectory = Annotated[
    str | None,
    option("--file-storage-dir", metavar="PATH", help="where new file disks are, on each node"),
]
SharedFileDirectory = Annotated[
    str | None,
    option(
        "--shared-file-storage-dir",
        metavar="PATH",
        help="where new shared file disks are: the same on every node",
    ),
]
GlusterDirectory = Annotated[
    str | None,
    option(
        "--gluster-storage-dir",
        metavar="PATH",
        help="where the Gluster volume of new gluster disks is mounted: the same on every node",
    ),
]
MaintainedHealth = Annotated[
    bool | None,
    option(
        "--maintain-node-health",
        help="whether the watcher has a node that is silent switched off and marked offline",
        syntax=Syntax.YES_NO,
    ),
]
HypervisorDefaults = Annotated[
    dict[str, dict[str, Any]] | None,
    option(
        "-H",
        "--hypervisor-defaults",
        "--hypervisor-parameters",
        syntax=Syntax.LAYERS,
        metavar="HYPERVISOR:NAME=VALUE,…",
        help="defaults of all instances, as in kvm:acpi=no",
    ),
]
BackendDefaults = Annotated[
    dict[str, Any] | None,
    option(
        "-B",
        "--backend-parameters",
        syntax=Syntax.KEYVAL,
        help="defaults of all instances: memory=SIZE,vcpus=N,…",
    ),
]
NicDefaults = Annotated[
    dict[str, Any] | None,
    option(
        "-N",
        "--nic-parameters",
        syntax=Syntax.KEYVAL,
        help="defaults of all nics: mode=MODE,link=BRIDGE",
    ),
]
NodeDefaults = Annotated[
    dict[str, Any] | None,
    option(
        "--node-parameters", syntax=Syntax.KEYVAL, help="defaults of all nodes: cpu_speed=FACTOR,…"
    ),
]
ClusterPolicyOption = Annotated[
    dict[str, Any] | None,
    option(
        "--ipolicy-std-specs",
        "--ipolicy-bounds-specs",
        "--ipolicy-disk-templates",
        "--ipolicy-vcpu-ratio",
        "--ipolicy-spindle-ratio",
        help="“default”: as in a new cluster",
        syntax=Syntax.POLICY,
    ),
]
