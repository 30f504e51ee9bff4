"""Make a new instance."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node, NodeRef
from common.model.os_name import read_os_name
from common.model.parameters import Backend, filled, sound
from common.model.tags import check_tags
from common.model.template import DiskTemplate
from common.names import InstanceId, InstanceName, MiB, NodeId, check_name
from common.noderpc.copies import Compression
from common.noderpc.instances import GuestSpec, Instances
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import (
    forget_instance,
    keep_for_instance,
    read_parameters,
)
from coordinator.operations.addresses import check_apart, check_connected
from coordinator.operations.backup import receiving
from coordinator.operations.backup.receiving import Receiving, Source, plan_receiving, receive_disks
from coordinator.operations.backup.trust import trust_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import (
    DiskRequest,
    NicRequest,
    check_counts,
    check_macs,
    with_provider_parameters,
)
from coordinator.operations.fields import (
    OS_SIZE,
    AllocatorOption,
    BackendParameters,
    ConflictsCheck,
    ForceVariant,
    HypervisorParameters,
    IgnorePolicy,
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
    adopt_disk,
    check_adoption,
    find_adopted,
    sized,
    where_found,
)
from coordinator.operations.instance.display_port import with_port
from coordinator.operations.instance.new_disk import new_disks
from coordinator.operations.instance.new_nic import new_nics
from coordinator.operations.instance.place import Place, another_if_stale, named_place, place_of
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Shorthand, Syntax, argument, hidden, option
from coordinator.operations.placement.allocators import (
    BUILT_IN,
    RequestType,
    allocators_for,
)
from coordinator.operations.placement.choose import place_new
from coordinator.operations.placement.fit import check_policy, check_still_fits, promise_of
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import guest_spec, read_backend
from coordinator.operations.step import Step, record
from coordinator.operations.steps.checks import check_takes_instances
from coordinator.operations.steps.disks import create_disk
from coordinator.operations.steps.guests import start_guest
from coordinator.operations.steps.mirrors import join_copies, let_go
from coordinator.operations.steps.scripts import (
    ScriptRun,
    check_not_blacklisted,
    complete,
    lost_parameters,
    put_script_away,
    run_script,
    subject_of,
)
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State


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


@operation("OP_INSTANCE_CREATE")
class CreateInstance(Operation[Place, CreatePlan], kw_only=True):
    """Create an instance with its disks and nics, and start it."""

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
            help="N:size=SIZE[,mode=ro][,name=NAME]",
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
    pnode: PrimaryNodeOption = None
    snode: SecondaryNodeField = None
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
        disks = given.get("disks")
        if not isinstance(disks, list):
            return given
        return given | {"disks": [with_provider_parameters(disk) for disk in disks]}

    def locks(self, config: Config, place: Place) -> Wanted:
        nodes = [node.uuid for node in place.nodes]
        networks = [config.get(NETWORK, nic.network).uuid for nic in self.nics if nic.network]
        return wanted(instance=self.instance_name, nodes=nodes, room=nodes, networks=networks)

    async def choose(self, cluster: Cluster) -> Place:
        self.check_words(cluster.config)
        if self.mode == receiving.MODE:
            self._source.check(trust_of(cluster.state))
        if self.pnode:
            names = list(filter(None, (self.pnode, self.snode)))
            return named_place(cluster.config, self.template, names)
        allocators = allocators_for(
            cluster.config.cluster, RequestType.ALLOCATE, self.iallocator, instead="a node with -n"
        )
        chosen = await place_new(cluster, allocators, self.placement_request(cluster))
        return place_of(chosen.nodes, chosen.allocator)

    async def prepare(self, cluster: Cluster, place: Place) -> CreatePlan:
        self.check_words(cluster.config)  # once more: it may have waited for its locks
        plan = await self._placed(cluster, place)
        return await self._startable(cluster, plan)

    async def _placed(self, cluster: Cluster, place: Place) -> CreatePlan:
        """Return the new objects, where there is room for them, and have others count with that."""
        config = cluster.config
        kind = kind_of(self.template)
        with another_if_stale(cluster, place):
            nodes = place.find_all(config)
            for each in nodes:
                check_takes_instances(each)
        node = nodes[0]
        found = await find_adopted(cluster, kind, node, self.disks)
        uuids = [each.uuid for each in nodes]
        instance, disks, nics = self._objects(cluster, uuids, sized(self.disks, found))
        disks, instance = where_found(disks, found), with_port(cluster, instance)
        taken = PlannedInstance(instance, () if found else disks)
        # While nodes are asked nobody else is given the numbers and addresses of its devices.
        promise = Promise(instance.uuid, node.uuid, disks=disks)
        if place.allocator:
            promise = promise_of(config, taken, nodes)
        cluster.promise(promise._replace(nics=nics, port=instance.network_port))
        check_connected(config, nics, node.uuid)
        if self.conflicts_check:
            check_apart(config, node.group, nics)
        if not self.ignore_ipolicy:
            check_policy(config, PlannedInstance(instance, disks), node)
        guest = guest_spec(config, instance, disks, nics)
        with another_if_stale(cluster, place):
            built_in = place.allocator == BUILT_IN
            await check_still_fits(cluster, taken, nodes, built_in=built_in, nics=nics)
        comes = await self._receiving(cluster, nodes[0], place, guest)
        is_renamed = kind.traits.is_in_volume_group
        return CreatePlan(
            node=node.ref,
            adopted=tuple(disk.adopt for disk in self.disks) if found and is_renamed else (),
            others=place.others,
            instance=instance,
            disks=disks,
            nics=nics,
            guest=guest,
            start=self.start,
            attach=kind.before_start(place.nodes),
            receiving=comes,
        )

    async def _startable(self, cluster: Cluster, plan: CreatePlan) -> CreatePlan:
        """Check that its node can start it and install its operating system; plan that, too."""
        await cluster.call(Instances, plan.node).check_startable(guest=plan.guest)
        if (install := self._installation(cluster, plan)) is not None:
            order = self._script(cluster, plan, install)
            await cluster.call(OperatingSystems, plan.node).check(order=order)
        return replace(plan, install=install)

    def on(self, place: Place) -> "CreateInstance":
        """Return the same order for nodes that were chosen."""
        secondary = place.others[0].name if place.others else None
        return replace(self, pnode=place.node.name, snode=secondary)

    def placement_request(self, cluster: Cluster) -> PlannedInstance:
        """Return the instance as it is placed: complete but for its nodes."""
        instance, disks, nics = self._objects(cluster, [NodeId("")], self.disks)
        return PlannedInstance(instance, disks, nics)

    def intends(self, cluster: Cluster, place: Place) -> Iterable[Promise]:
        known = cluster.config.nodes
        nodes = [known[node.uuid] for node in place.nodes if node.uuid in known]
        if len(nodes) < len(place.nodes):
            return ()
        return [promise_of(cluster.config, self.placement_request(cluster), nodes)]

    def promises(self, plan: CreatePlan) -> Iterable[Promise]:
        memory = plan.guest.memory if plan.instance.takes_memory else MiB(0)
        planned = PlannedInstance(plan.instance, () if plan.adopted else plan.disks)
        port = plan.instance.network_port
        node = plan.node.uuid
        return [Promise(plan.instance.uuid, node, memory, planned, nics=plan.nics, port=port)]

    def recipe(self, cluster: Cluster, plan: CreatePlan) -> Iterator[Step]:
        nodes = (plan.node, *plan.others)
        for index, disk in enumerate(plan.guest.disks):
            if plan.adopted:
                yield adopt_disk(cluster, index, disk, plan.adopted[index], plan.node)
                continue
            others = () if index else plan.guest.disks[1:]
            yield create_disk(cluster, index, disk, nodes, others=others)
        if plan.others:
            yield join_copies(cluster, plan.guest, nodes)
            if not plan.start:
                yield let_go(cluster, plan.guest, nodes)
        if (install := plan.install) is not None:
            title = f"install {plan.instance.os} on {plan.instance.name}"
            order = partial(self._script, cluster, plan, install)
            yield run_script(cluster, install, title, order)
            yield put_script_away(cluster, install)
        added = record(
            f"add {plan.instance.name} to the configuration",
            lambda state: [*self._added(state, plan), *self._kept(state, plan)],
            undo=lambda state: [
                *forget_instance(state, plan.instance.uuid),
                *self._taken_back(plan),
            ],
        )
        if plan.receiving is None:
            yield added
        else:
            yield from receive_disks(cluster, plan.instance.name, plan.receiving, added)
        if plan.start:
            yield start_guest(cluster, plan.guest, plan.node, plan.attach)

    def result(self, plan: CreatePlan) -> list[str] | str:
        return [str(plan.node), *map(str, plan.others)]

    def dry_result(self, cluster: Cluster, plan: CreatePlan, titles: list[str]) -> list[str]:
        for title in titles:
            cluster.log(f"would {title}")
        return [str(plan.node), *map(str, plan.others)]

    @classmethod
    def show_dry_run(cls, result: list[str]) -> list[str]:
        return [f"Selected nodes for the instance: {', '.join(result)}"]

    def check_words(self, config: Config) -> None:
        """Check what needs no look at any node."""
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
        for disk in self.disks:
            kind.check_wish(disk)
        check_adoption(kind, self.disks, node=self.pnode)

    def _check_rest(self, config: Config) -> None:
        check_tags(self.tags)
        if self.mode not in ("create", receiving.MODE):
            raise InvalidRequest(
                f"Instances are made anew (“create”) or come from another cluster "
                f"(“{receiving.MODE}”), not by “{self.mode}”."
            )
        if self.expires and not self.forthcoming:
            raise InvalidRequest(
                "Only what is reserved expires: --expires goes with --forthcoming."
            )
        if self.snode and not self.pnode:
            raise InvalidRequest("Name the primary node, too, or neither of the two.")
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
        check_macs(config, filter(None, (nic.wanted_mac() for nic in self.nics)))
        for nic in self.nics:
            if nic.network:
                config.get(NETWORK, nic.network)
        layers = (sound(Backend, config.cluster.beparams), read_backend(self.beparams))
        what = f"the backend parameters of {self.instance_name}"
        filled(Backend, *layers, what=what)

    def _installation(self, cluster: Cluster, plan: CreatePlan) -> ScriptRun | None:
        """Return what installs its operating system, if that is to be done."""
        # It has been installed elsewhere.
        is_left = any(disk.adopt for disk in self.disks) or self.mode == receiving.MODE
        instance, disks = plan.instance, plan.disks
        if not instance.os or self.no_install or is_left or not disks:
            return None
        kind, nodes = kind_of(instance.disk_template), (plan.node, *plan.others)
        subject = subject_of(cluster.config, instance, disks, plan.nics, plan.guest, nodes)
        return ScriptRun(
            node=plan.node,
            order=ScriptOrder(
                script=Script.CREATE, subject=subject, may_be_unknown=self.force_variant
            ),
            attach=kind.before_start(nodes),
            detach=kind.after_stop(nodes),
        )

    async def _receiving(
        self, cluster: Cluster, node: Node, place: Place, guest: GuestSpec
    ) -> Receiving | None:
        """Return what fills its disks, if it comes from another cluster."""
        if self.mode != receiving.MODE:
            return None
        kind = kind_of(self.template)
        return await plan_receiving(cluster, self._source, kind, node, place.nodes, guest.disks)

    @property
    def _source(self) -> Source:
        return Source(
            handshake=self.source_handshake,
            certificate=self.source_x509_ca,
            instance=self.source_instance_name,
            shutdown_timeout=self.source_shutdown_timeout,
        )

    def _script(self, cluster: Cluster, plan: CreatePlan, install: ScriptRun) -> ScriptOrder:
        given = (self.osparams_private, self.osparams_secret)
        return complete(cluster, install.order, plan.instance.osparams, *given)

    def _kept(self, state: State, plan: CreatePlan) -> list[Put | Delete]:
        """Return what keeps its private parameters."""
        instance, given = plan.instance, self.osparams_private
        if isinstance(given, str):
            raise lost_parameters()
        return keep_for_instance(state, instance.uuid, instance.os, given) if given else []

    def _objects(
        self, cluster: Cluster, nodes: Sequence[NodeId], requests: Sequence[DiskRequest]
    ) -> tuple[Instance, tuple[Disk, ...], tuple[Nic, ...]]:
        config, now = cluster.config, cluster.now()
        uuid, kind = InstanceId(cluster.new_uuid()), kind_of(self.template)
        disks = new_disks(cluster, kind, uuid, nodes, requests, free_devices(cluster))
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

    def _added(self, state: State, plan: CreatePlan) -> list[Update]:
        """Return what adds the new objects to the configuration."""
        if state.config.find_instance(plan.instance.name):
            raise Conflict(f"There is an instance {plan.instance.name} already.")
        check_macs(state.config, (nic.mac for nic in plan.nics))
        return [Put(item) for item in items_of(plan)]

    def _taken_back(self, plan: CreatePlan) -> list[Update]:
        """Return what has the configuration as it was."""
        return [Delete(item) for item in items_of(plan)]


def items_of(plan: CreatePlan) -> list[Instance | Disk | Nic]:
    """Return all new objects."""
    return [plan.instance, *plan.disks, *plan.nics]
