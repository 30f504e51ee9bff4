"""``gnt-cluster init``: there is no coordinator yet that could be asked."""

import argparse
import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.model.template import ENABLED_AT_FIRST
from common.names import ClusterName, NodeName
from common.paths import Paths
from coordinator.cli import service
from coordinator.cli.address import find_address
from coordinator.cli.derive import add_fields, read_fields
from coordinator.cli.parser import Parser, add_ignored, add_json
from coordinator.cli.refused import add_refused
from coordinator.cli.telling import tell
from coordinator.operations.cluster.fields import (
    AllocatorOptions,
    BackendDefaults,
    ClusterPolicyOption,
    DefaultAllocator,
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
from coordinator.operations.cluster.uid_pool import UidPoolOption
from coordinator.operations.fields import DiskParametersOption, SecondaryAddress
from coordinator.operations.parameter import Syntax, argument, option

if TYPE_CHECKING:
    from coordinator.master.bootstrap import NewCluster

ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation (RFC 5737); nothing is sent there
IGNORED = ("--no-etc-hosts", "--no-ssh-init")  # Ganeti's; we never touch either


class Words(Order, kw_only=True):
    """What the command takes; most of it can be changed later by ``gnt-cluster modify``."""

    name: Annotated[str, argument("of the cluster")]
    node_name: Annotated[
        str | None, option("--node-name", metavar="NAME", help="of this node (its host name)")
    ] = None
    primary_ip: Annotated[
        str | None,
        option(
            "--address",
            "--primary-ip",
            syntax=Syntax.ADDRESS,
            help="of this node, for the others (found by its name)",
        ),
    ] = None
    secondary_ip: SecondaryAddress = None
    candidate_pool_size: PoolSize = 5
    uid_pool: UidPoolOption = None
    enabled_user_shutdown: UserShutdown = None
    enabled_hypervisors: EnabledHypervisors = ("kvm",)
    enabled_disk_templates: EnabledTemplates = tuple(map(str, ENABLED_AT_FIRST))
    vg_name: VolumeGroup = ""
    file_storage_dir: FileDirectory = ""
    shared_file_storage_dir: SharedFileDirectory = ""
    gluster_storage_dir: GlusterDirectory = ""
    default_iallocator: DefaultAllocator = "hail"
    default_iallocator_params: AllocatorOptions = None
    mac_prefix: MacPrefix = "aa:00:00"
    master_ip: MasterIp = None
    master_netdev: MasterDevice = None
    master_netmask: MasterNetmask = None
    maintain_node_health: MaintainedHealth = None
    hvparams: HypervisorDefaults = {}
    beparams: BackendDefaults = {}
    nicparams: NicDefaults = {}
    ndparams: NodeDefaults = {}
    diskparams: DiskParametersOption = {}
    ipolicy: ClusterPolicyOption = {}


def init(command: str, words: Sequence[str]) -> int:
    """Make a cluster of this node, and start its coordinator."""
    options = parser_of(command).parse_args(words)
    from coordinator.master.bootstrap import check_in_no_cluster, initialise

    check_in_no_cluster(Paths())  # before anything is wrong with the words
    wanted = read_wanted(options)
    asyncio.run(initialise(Paths(), wanted))
    service.start(service.port_words(options.port))
    tell(
        options,
        {"cluster": wanted.name, "master": wanted.node},
        f"The cluster {wanted.name} is ready. This node, {wanted.node}, is its master.",
    )
    return 0


def parser_of(command: str) -> Parser:
    """Return what reads the words of the command."""
    parser = Parser(command, "Make a cluster with this node as its first and its master.")
    add_fields(parser, Words)
    service.add_port(parser)
    add_json(parser)
    add_ignored(parser, IGNORED)
    add_refused(parser, command)
    return parser


def read_wanted(options: argparse.Namespace) -> "NewCluster":
    """Turn the words into what a new cluster is made of.

    Raises:
        InvalidRequest: a word is not what it should be, or this node has no address.
    """
    from common.model.policy import InstancePolicy, edited_policy
    from common.model.settings import Settings, read_settings
    from coordinator.master.bootstrap import NewCluster
    from coordinator.operations.specs import read_backend

    given = from_builtins(read_fields(Words, options), Words, what="the words of the command")
    node = given.node_name or socket.gethostname()
    settings = {name: getattr(given, name, None) for name in Settings.__struct_fields__}
    settings["volume_group_name"] = given.vg_name
    if given.master_netdev and given.master_ip is None:
        settings["master_ip"] = find_address(given.name)  # as with Ganeti
    return NewCluster(
        name=ClusterName(given.name),
        node=NodeName(node),
        primary_ip=given.primary_ip or own_address(node),
        secondary_ip=given.secondary_ip or "",
        port=options.port,
        default_iallocator=given.default_iallocator or "",
        default_iallocator_params=given.default_iallocator_params or {},
        settings=read_settings(settings),
        hvparams=given.hvparams or {},
        beparams=read_backend(given.beparams or {}),
        nicparams=given.nicparams or {},
        ndparams=given.ndparams or {},
        diskparams=given.diskparams or {},
        ipolicy=edited_policy(InstancePolicy(), given.ipolicy or {}),
    )


def own_address(node: str) -> str:
    """Return the address by which other machines know this one.

    Raises:
        InvalidRequest: the name leads to none, and there is no route to anywhere.
    """
    try:
        found = [str(info[4][0]) for info in socket.getaddrinfo(node, None, socket.AF_INET)]
    except OSError:
        found = []
    outside = [address for address in found if not address.startswith("127.")]
    if outside:
        return outside[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError as error:
            raise InvalidRequest(
                f"The name {node} leads to no address of this machine; give --address."
            ) from error
        return str(probe.getsockname()[0])
