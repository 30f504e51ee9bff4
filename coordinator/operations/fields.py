"""Fields that several operations have, spelled the same everywhere.

instance_name: InstanceArgument
iallocator: AllocatorOption = None
"""

from typing import Annotated, Any

from msgspec import Meta

from common.model.allocation_policy import AllocationPolicy
from common.model.any_hypervisor import MigrationMode
from common.names import GroupName, InstanceName, MiB, NetworkName, NodeName
from common.noderpc.copies import Compression, Rate
from coordinator.operations.parameter import Shorthand, Syntax, argument, hidden, option

InstanceArgument = Annotated[InstanceName, argument("name of the instance")]
GroupArgument = Annotated[GroupName, argument("name of the group")]
NodeArgument = Annotated[NodeName, argument("name of the node")]
MacPrefixOption = Annotated[
    str | None, option("-m", "--mac-prefix", help="first half of MAC addresses: aa:00:00")
]
NetworkSixOption = Annotated[
    str | None, option("--network6", help="its IPv6 addresses: 2001:db8::/64")
]
GatewaySixOption = Annotated[str | None, option("--gateway6", help="its IPv6 router")]
NetworkArgument = Annotated[NetworkName, argument("name of the network")]

AllocatorOption = Annotated[
    str | None, option("-I", "--iallocator", help="have this allocator choose the nodes")
]
TargetGroupsOption = Annotated[
    tuple[str, ...],
    option("--to", help="groups it may go to, with commas (any other)", syntax=Syntax.LIST),
]
IgnoreConsistency = Annotated[
    bool,
    option(
        "--ignore-consistency",
        help="take a copy of its disks as it is, though it may lack what was written last",
        syntax=Syntax.FLAG,
    ),
]
EarlyRelease = Annotated[
    bool,
    option(
        "--early-release",
        help="delete the copies that are left before all is copied",
        syntax=Syntax.FLAG,
    ),
]
TargetNodeOption = Annotated[str | None, option("-n", "--target-node", help="node to move it to")]

CleanupOption = Annotated[
    bool,
    option(
        "--cleanup",
        help="put right what a move left that was cut off: record where it runs, and clear it away "
        "from other nodes",
        syntax=Syntax.FLAG,
    ),
]
MigrationModeOption = Annotated[
    MigrationMode | None,
    option("--migration-mode", help="whether what runs goes on meanwhile; else as configured"),
]
LiveOption = Annotated[
    bool | None,
    option("--non-live", help="have it stand still meanwhile", syntax=Syntax.NO_FLAG),
]

Patience = Annotated[int, Meta(ge=0, le=7 * 86_400)]  # seconds; more than a week is a slip
RoomOption = Annotated[
    MiB | None,
    option("--room", help="how much of each disk may change before its snapshot is lost (all)"),
]
FreezeOption = Annotated[
    bool,
    option(
        "--freeze",
        help="have the agent in the guest make its file systems whole on the disks first",
        syntax=Syntax.FLAG,
    ),
]
ShutdownTimeout = Annotated[
    Patience, option("--shutdown-timeout", help="seconds to wait before it is killed")
]
WaitForSync = Annotated[
    bool,
    option(
        "--no-wait-for-sync",
        help="do not wait until both copies of mirrored disks are equal",
        syntax=Syntax.NO_FLAG,
    ),
]
ConflictsCheck = Annotated[
    bool,
    option(
        "--no-conflicts-check",
        help="allow addresses that are used elsewhere, too",
        syntax=Syntax.NO_FLAG,
    ),
]
NoRemember = Annotated[
    bool,
    option("--no-remember", help="do not record how it should be now", syntax=Syntax.FLAG),
]
IgnoreOffline = Annotated[
    bool,
    option("--ignore-offline", help="record it even if its node is offline", syntax=Syntax.FLAG),
]

CompressionOption = Annotated[
    Compression, option("--compress", help="make data smaller on its way between nodes")
]
RateOption = Annotated[
    Rate,
    option("--rate-limit", help="MiB per second that may be sent; 0: as fast as it goes"),
]

AllocationPolicyOption = Annotated[
    AllocationPolicy | None,
    option(
        "--alloc-policy",
        help="whether new instances may go there: always, where no other group has room, or never",
    ),
]
NodeParametersOption = Annotated[
    dict[str, Any] | None,
    option("--node-parameters", help="NAME=VALUE,…; “default” resets one", syntax=Syntax.KEYVAL),
]
DiskParametersOption = Annotated[
    dict[str, dict[str, Any]] | None,
    option(
        "-D",
        "--disk-parameters",
        syntax=Syntax.LAYERS,
        metavar="TEMPLATE:NAME=VALUE,…",
        help="how disks of a template are made, as in drbd:resync-rate=102400",
    ),
]
PolicyOption = Annotated[
    dict[str, Any] | None,
    option(
        "--ipolicy-bounds-specs",
        "--ipolicy-disk-templates",
        "--ipolicy-vcpu-ratio",
        "--ipolicy-spindle-ratio",
        help="“default”: as the cluster has it",
        syntax=Syntax.POLICY,
    ),
]

SecondaryAddress = Annotated[
    str | None,
    option("-s", "--secondary-ip", help="for replication and migration", syntax=Syntax.ADDRESS),
]
MasterCapable = Annotated[
    bool | None, option("--master-capable", help="may become master", syntax=Syntax.YES_NO)
]
VmCapable = Annotated[
    bool | None, option("--vm-capable", help="may run instances", syntax=Syntax.YES_NO)
]

OsType = Annotated[
    str | None,
    option("-o", "--os-type", metavar="OS[+VARIANT]", help="operating system that is installed"),
]
ForceVariant = Annotated[
    bool,
    option(
        "--force-variant",
        help="even if the operating system declares no such variant",
        syntax=Syntax.FLAG,
    ),
]
FileDirectoryOption = Annotated[
    str | None,
    option(
        "--file-storage-dir",
        metavar="DIRECTORY",
        help="keep new disks that are files in this directory below the cluster's",
    ),
]
OS_SIZE = Shorthand(("-s", "--os-size"), "size of its only disk", "0:size={}")
OsParameters = Annotated[
    dict[str, Any], option("-O", "--os-parameters", help="NAME=VALUE,…", syntax=Syntax.KEYVAL)
]
PrivateOsParameters = Annotated[
    dict[str, Any] | str,
    option(
        "--os-parameters-private",
        help="NAME=VALUE,…; kept, and shown to nobody",
        syntax=Syntax.KEYVAL,
        secret=True,
    ),
]
SecretOsParameters = Annotated[
    dict[str, Any] | str,
    option(
        "--os-parameters-secret",
        help="NAME=VALUE,…; for this time only, and not kept",
        syntax=Syntax.KEYVAL,
        secret=True,
    ),
]

PrimaryNodeOption = Annotated[
    str | None,
    option(
        "-n",
        "--node",
        help="node to run on, and the secondary node of a mirrored disk template",
        syntax=Syntax.NODES,
    ),
]
NodeGroupOption = Annotated[
    str | None,
    option(
        "-g", "--node-group", metavar="GROUP", help="have an allocator choose nodes of this group"
    ),
]
SecondaryNodeField = Annotated[str | None, hidden("secondary node of a mirrored disk template")]
HypervisorParameters = Annotated[
    dict[str, Any],
    option(
        "-H",
        "--hypervisor-parameters",
        help="[HYPERVISOR:]NAME=VALUE,…",
        syntax=Syntax.HYPERVISOR,
    ),
]
BackendParameters = Annotated[
    dict[str, Any],
    option("-B", "--backend-parameters", help="memory=SIZE,vcpus=N,…", syntax=Syntax.KEYVAL),
]
TagsOption = Annotated[
    tuple[str, ...], option("--tags", help="comma-separated tags", syntax=Syntax.LIST)
]
IgnorePolicy = Annotated[
    bool, option("--ignore-ipolicy", help="whatever the policy says", syntax=Syntax.FLAG)
]
