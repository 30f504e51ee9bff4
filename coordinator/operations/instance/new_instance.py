"""What is said of a new instance, and the objects that it becomes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import NodeRef
from common.model.os_name import read_os_name
from common.model.parameters import Backend, filled, sound
from common.model.tags import check_tags
from common.model.template import DiskTemplate
from common.names import GroupId, InstanceId, InstanceName, NodeId, check_name
from common.noderpc.copies import Compression
from common.noderpc.instances import GuestSpec
from coordinator.disks.holding import Handover
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.disks.wish import DiskWish
from coordinator.operating_systems.parameters import (
    read_parameters,
)
from coordinator.operations.backup import receiving
from coordinator.operations.backup.receiving import Receiving, Source
from coordinator.operations.base import Operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import (
    DiskRequest,
    NicRequest,
    as_new_devices,
    check_counts,
    check_macs,
    check_names,
    in_directory,
)
from coordinator.operations.fields import (
    OS_SIZE,
    AllocatorOption,
    BackendParameters,
    ConflictsCheck,
    FileDirectoryOption,
    ForceVariant,
    HypervisorParameters,
    IgnorePolicy,
    NodeGroupOption,
    OsParameters,
    OsType,
    Patience,
    PrimaryNodeOption,
    PrivateOsParameters,
    SecondaryNodeField,
    SecretOsParameters,
    TagsOption,
)
from coordinator.operations.instance.adoption import (
    check_adoption,
)
from coordinator.operations.instance.new_disk import new_disks
from coordinator.operations.instance.new_nic import new_nics
from coordinator.operations.instance.place import Place
from coordinator.operations.parameter import Shorthand, Syntax, argument, hidden, option
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.specs import read_backend
from coordinator.operations.steps.scripts import (
    ScriptRun,
    check_not_blacklisted,
)
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class CreatePlan(Order, kw_only=True):
    """The new objects, complete."""

    node: NodeRef
    others: tuple[NodeRef, ...] = ()  # that hold its disks, too
    adopted: tuple[str, ...] = ()  # what its disks were called before they were its
    instance: Instance
    disks: tuple[Disk, ...]
    nics: tuple[Nic, ...]
    guest: GuestSpec
    attach: Handover
    start: bool
    install: ScriptRun | None = None
    receiving: Receiving | None = None  # from another cluster
    reserved: Instance | None = None  # as it was while it was only reserved


class NewInstance(Operation[Place, CreatePlan], kw_only=True):
    """An order for an instance, as it is given, and checked as far as no node is asked."""

    instance_name: Annotated[
        InstanceName, argument("name of the new instance; a reservation can do without")
    ] = InstanceName("")
    disk_template: Annotated[
        DiskTemplate | None, option("-t", "--disk-template", help="how its disks are kept")
    ] = None
    disks: Annotated[
        tuple[DiskRequest, ...],
        option(
            "--disk",
            help="N:size=SIZE[,mode=ro][,name=NAME][,spindles=NUMBER]",
            syntax=Syntax.DEVICES,
            shorthands=(OS_SIZE,),
        ),
    ] = ()
    nics: Annotated[
        tuple[NicRequest, ...],
        option(
            "--net",
            help="N:link=BRIDGE[,mac=MAC][,ip=IP][,mode=MODE], or N:network=NAME[,ip=pool] "
            "(one, as the cluster's parameters say)",
            syntax=Syntax.DEVICES,
            instead=("0",),
            shorthands=(Shorthand(("--no-nics",), "without any"),),
        ),
    ] = ()
    file_storage_dir: FileDirectoryOption = None
    pnode: PrimaryNodeOption = None
    snode: SecondaryNodeField = None
    group_name: NodeGroupOption = None
    iallocator: AllocatorOption = None
    hypervisor: Annotated[
        str | None, hidden("name of the hypervisor; default: the cluster's first")
    ] = None
    hvparams: HypervisorParameters = {}
    beparams: BackendParameters = {}
    os_type: OsType = None
    force_variant: ForceVariant = False
    osparams: OsParameters = {}
    osparams_private: PrivateOsParameters = {}
    osparams_secret: SecretOsParameters = {}
    start: Annotated[bool, option("--no-start", help="do not start it", syntax=Syntax.NO_FLAG)] = (
        True
    )
    no_install: Annotated[
        bool | None, option("--no-install", help="leave its disks empty", syntax=Syntax.FLAG)
    ] = None
    tags: TagsOption = ()
    conflicts_check: ConflictsCheck = True
    ignore_ipolicy: IgnorePolicy = False
    mode: Annotated[str, hidden("“create” or “remote-import”")] = "create"
    source_handshake: Annotated[
        tuple[Any, ...] | None, hidden("of the cluster from which it comes")
    ] = None
    source_x509_ca: Annotated[str | None, hidden("of the node from which it comes")] = None
    source_instance_name: Annotated[str | None, hidden("what it is called there")] = None
    source_shutdown_timeout: Annotated[Patience, hidden("how long it may take to stop there")] = 120
    compress: Annotated[Compression, hidden("as who sends it says")] = Compression.NONE
    forthcoming: Annotated[
        bool,
        option(
            "--forthcoming",
            help="only reserve what it takes; no node is told, and everything else is optional",
            syntax=Syntax.FLAG,
        ),
    ] = False
    commit: Annotated[
        bool,
        option(
            "--commit",
            help="make the one of this name, or UUID, that is reserved",
            syntax=Syntax.FLAG,
        ),
    ] = False
    expires: Annotated[
        str | None,
        option("--expires", metavar="TIME", help="with --forthcoming: gone after 12h, 3d, …"),
    ] = None

    needs: ClassVar[Mapping[str, str]] = {
        "instance_name": "its name",
        "disk_template": "how its disks are kept, with --disk-template",
    }

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("mode") == receiving.MODE:
            given = receiving.as_told(given)
        if lacking := [what for name, what in cls.needs.items() if not given.get(name)]:
            raise InvalidRequest(f"Say of the new instance {' and '.join(lacking)}.")
        return as_new_devices(given)

    def placement_request(self, cluster: Cluster) -> PlannedInstance:
        """Return the instance as it is placed: complete but for its nodes."""
        instance, disks, nics = self._objects(cluster, [NodeId("")], self.disks)
        return PlannedInstance(instance, disks, nics, self.group(cluster.config))

    def group(self, config: Config) -> GroupId | None:
        """The only one where it may go."""
        return config.group(self.group_name).uuid if self.group_name else None

    def check_words(self, config: Config) -> None:
        """Check what needs no look at any node."""
        if self.pnode and self.iallocator:
            raise InvalidRequest("Name a node or an allocator, not both.")
        self._check_name(config)
        self._check_disks(config)
        self._check_rest(config)

    @property
    def template(self) -> DiskTemplate:
        """How its disks are kept."""
        assert self.disk_template
        return self.disk_template

    def _check_name(self, config: Config) -> None:
        check_name(self.instance_name, "instance")
        if config.find_instance(self.instance_name):
            raise Conflict(
                f"There is an instance {self.instance_name} already.", instance=self.instance_name
            )

    def _check_disks(self, config: Config) -> None:
        check_enabled(config.cluster, self.template)
        kind = kind_of(self.template)
        kind.check_number(self.disks)
        self._check_wishes(kind)
        check_adoption(kind, self.disks, node=self.pnode)

    def _check_wishes(self, kind: DiskKind) -> None:
        if self.file_storage_dir:  # some kinds refuse a disk of which nothing is said
            kind.check_wish(DiskWish(directory=self.file_storage_dir))
        for disk in self.disks:
            kind.check_wish(disk)

    def _check_rest(self, config: Config) -> None:
        check_tags(self.tags)
        if self.mode not in ("create", receiving.MODE):
            raise InvalidRequest(
                f"Instances are made anew (“create”) or come from another cluster "
                f"(“{receiving.MODE}”), not by “{self.mode}”."
            )
        if self.expires is not None and not self.forthcoming:
            raise InvalidRequest(
                "Only what is reserved expires: --expires goes with --forthcoming."
            )
        if self.snode and not self.pnode:
            raise InvalidRequest("Name the primary node, too, or neither of the two.")
        if self.group_name and self.pnode:
            raise InvalidRequest("Name a node, or a group whose nodes are chosen from, not both.")
        self.group(config)
        if self.os_type:
            read_os_name(self.os_type)
            if not self.no_install:
                check_not_blacklisted(config, self.os_type)
        read_parameters(self.osparams, what="the parameters of its operating system")
        enabled_hypervisors = config.cluster.enabled_hypervisors
        if (self.hypervisor or enabled_hypervisors[0]) not in enabled_hypervisors:
            raise InvalidRequest(
                f"The hypervisor {self.hypervisor} is not enabled on this cluster; enabled are: "
                f"{', '.join(enabled_hypervisors)}."
            )
        check_counts(self.disks, self.nics)
        check_names(self.disks, kind="disk")
        check_names(self.nics, kind="nic")
        check_macs(config, filter(None, (nic.wanted_mac() for nic in self.nics)))
        for nic in self.nics:
            if nic.network:
                config.get(NETWORK, nic.network)
        layers = (sound(Backend, config.cluster.beparams), read_backend(self.beparams))
        what = f"the backend parameters of {self.instance_name}"
        filled(Backend, *layers, what=what)

    @property
    def _source(self) -> Source:
        return Source(
            handshake=self.source_handshake,
            certificate=self.source_x509_ca,
            instance=self.source_instance_name,
            shutdown_timeout=self.source_shutdown_timeout,
        )

    def _objects(
        self, cluster: Cluster, nodes: Sequence[NodeId], requests: Sequence[DiskRequest]
    ) -> tuple[Instance, tuple[Disk, ...], tuple[Nic, ...]]:
        config, now = cluster.config, cluster.now()
        uuid, kind = InstanceId(cluster.new_uuid()), kind_of(self.template)
        wished = [in_directory(request, self.file_storage_dir) for request in requests]
        devices, group = free_devices(cluster), self.group(config)
        disks = new_disks(cluster, kind, uuid, nodes, wished, devices, group)
        nics = new_nics(cluster, self.nics)
        instance = Instance(
            uuid=uuid,
            ctime=now,
            mtime=now,
            name=self.instance_name or InstanceName(uuid),
            primary_node=nodes[0],
            admin_state=AdminState.UP if self.start else AdminState.DOWN,
            hypervisor=self.hypervisor or config.cluster.enabled_hypervisors[0],
            disk_template=self.template,
            os=self.os_type or "",
            disks=tuple(disk.uuid for disk in disks),
            nics=tuple(nic.uuid for nic in nics),
            hvparams=self.hvparams,
            beparams=read_backend(self.beparams),
            osparams=self.osparams,
            tags=tuple(sorted(set(self.tags))),
        )
        return instance, disks, nics
