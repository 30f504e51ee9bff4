"""Make an instance from an export."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

from common.errors import InvalidRequest
from common.messages import Order
from common.model.parameters import Backend
from common.model.template import DiskTemplate
from common.names import InstanceName
from common.noderpc.copies import Compression
from common.noderpc.exports import ExportReport, Exports
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.backup.as_it_was import (
    disks_of,
    hvparams_of,
    nics_of,
    own_parameters,
    template_of,
)
from coordinator.operations.backup.by_script import check_scripts, full_order, plan_scripts
from coordinator.operations.backup.description import Description, read_description
from coordinator.operations.backup.dumps import check_whole_disks, dumps_of
from coordinator.operations.backup.renaming import plan_renaming, rename_within
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest, NicRequest, as_new_devices
from coordinator.operations.fields import (
    OS_SIZE,
    AllocatorOption,
    BackendParameters,
    CompressionOption,
    ConflictsCheck,
    FileDirectoryOption,
    HypervisorParameters,
    IgnorePolicy,
    NodeGroupOption,
    OsParameters,
    PrimaryNodeOption,
    PrivateOsParameters,
    RateOption,
    SecondaryNodeField,
    SecretOsParameters,
    TagsOption,
)
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.new_instance import CreatePlan
from coordinator.operations.instance.place import Place
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, hidden, option
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online
from coordinator.operations.steps.copies import DiskCopy, Side, copy_disk, side_of
from coordinator.operations.steps.script_copies import ScriptCopy, copy_by_script
from coordinator.operations.steps.scripts import ScriptRun, complete, subject_of
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class ImportPlan(Order):
    creation: CreatePlan
    copies: tuple[DiskCopy, ...]
    scripted: tuple[ScriptCopy, ...] = ()  # instead, by a script of its operating system
    renaming: ScriptRun | None = None  # by another one


@operation("OP_BACKUP_IMPORT")
class ImportInstance(Operation[Place, ImportPlan], kw_only=True):
    """Make an instance from an export, ours or another cluster's; it is started if that is said."""

    instance_name: Annotated[InstanceName, argument("name of the new instance")]
    src_node: Annotated[str, option("--src-node", help="node that has the export")]
    src_path: Annotated[
        str | None, option("--src-dir", help="name of the export (that of the instance)")
    ] = None
    disk_template: Annotated[
        DiskTemplate | None,
        option("-t", "--disk-template", help="how its disks are kept (as they were)"),
    ] = None
    disks: Annotated[
        tuple[DiskRequest, ...],
        option(
            "--disk",
            help="N:size=SIZE[,…] (as they were)",
            syntax=Syntax.DEVICES,
            shorthands=(OS_SIZE,),
        ),
    ] = ()
    nics: Annotated[
        tuple[NicRequest, ...],
        option("--net", help="N:link=BRIDGE[,…] (as they were)", syntax=Syntax.DEVICES),
    ] = ()
    file_storage_dir: FileDirectoryOption = None
    no_nics: Annotated[bool, option("--no-nics", help="without any", syntax=Syntax.FLAG)] = False
    pnode: PrimaryNodeOption = None
    snode: SecondaryNodeField = None
    group_name: NodeGroupOption = None
    iallocator: AllocatorOption = None
    hypervisor: Annotated[
        str | None, hidden("name of the hypervisor; default: as it was, if that is enabled")
    ] = None
    hvparams: HypervisorParameters = {}
    beparams: BackendParameters = {}
    osparams: OsParameters = {}
    osparams_private: PrivateOsParameters = {}
    osparams_secret: SecretOsParameters = {}
    start: Annotated[
        bool, option("--start", help="start it when its disks are filled", syntax=Syntax.FLAG)
    ] = False
    tags: TagsOption = ()
    conflicts_check: ConflictsCheck = True
    compress: CompressionOption = Compression.NONE
    rate_limit: RateOption = 0
    ignore_ipolicy: IgnorePolicy = False

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        return as_new_devices(given)

    def locks(self, config: Config, place: Place) -> Wanted:
        nodes = [node.uuid for node in place.nodes]
        source = config.node(self.src_node).uuid
        # What the export says of networks is not known yet; those that it can mean stay.
        node = config.nodes.get(place.node.uuid)
        connected = config.groups[node.group].networks if node else ()
        named = [config.get(NETWORK, nic.network).uuid for nic in self.nics if nic.network]
        return wanted(
            instance=self.instance_name,
            nodes=[*nodes, source],
            room=nodes,
            networks=named if self.nics else connected,
        )

    async def choose(self, cluster: Cluster) -> Place:
        return await self._order(cluster.config, await self._look(cluster)).choose(cluster)

    async def prepare(self, cluster: Cluster, place: Place) -> ImportPlan:
        config = cluster.config
        report = await self._look(cluster)
        # What an export has of whole disks can be used without the system that it was made of.
        creation = await self._order(config, report).prepare_unnamed(cluster, place)
        was, node = read_description(report.config, report.name), config.node(self.src_node).ref
        dumps = dumps_of(cluster, report, was, node, creation.guest)
        if scripted := await self._by_script(cluster, creation, was, dumps):
            renaming = await plan_renaming(cluster, scripted[0].run, was.name)
            return ImportPlan(creation=creation, copies=(), scripted=scripted, renaming=renaming)
        if self.osparams_secret:
            raise InvalidRequest(
                "Secret parameters are for a script, and none is run: what the export has are "
                "whole disks."
            )
        check_whole_disks(report, was, creation.disks)
        kind = kind_of(creation.instance.disk_template)
        copies = tuple(
            DiskCopy(
                index=index,
                source=dump,
                target=side_of(kind, place.nodes, spec),
                compression=self.compress,
                rate=self.rate_limit,
            )
            for index, (dump, spec) in enumerate(zip(dumps, creation.guest.disks, strict=False))
        )
        return ImportPlan(creation=creation, copies=copies)

    async def _by_script(
        self, cluster: Cluster, creation: CreatePlan, was: Description, dumps: Sequence[Side]
    ) -> tuple[ScriptCopy, ...]:
        """Return what a script of its operating system does; nothing if dumps are whole disks."""
        if was.is_whole_disks:
            return ()
        instance, nodes = creation.instance, (creation.node, *creation.others)
        subject = subject_of(
            cluster.config, instance, creation.disks, creation.nics, creation.guest, nodes
        )
        kind = kind_of(instance.disk_template)
        scripted = await plan_scripts(
            cluster,
            ScriptRun(
                node=creation.node,
                order=ScriptOrder(script=Script.IMPORT, subject=subject),
                attach=kind.before_start(nodes),
                detach=kind.after_stop(nodes),
            ),
            dict(instance.osparams),
            dumps,
            compression=self.compress,
            rate=self.rate_limit,
        )
        await check_scripts(cluster, scripted, self.osparams_private, self.osparams_secret)
        return scripted

    def promises(self, plan: ImportPlan) -> Iterable[Promise]:
        return self._maker(plan.creation).promises(plan.creation)

    def recipe(self, cluster: Cluster, plan: ImportPlan) -> Iterator[Step]:
        has_data = False
        for step in self._maker(plan.creation).recipe(cluster, plan.creation):
            if step.edit and not has_data:  # its disks are there; now it becomes an instance
                has_data = True
                for copy in plan.copies:
                    yield copy_disk(cluster, copy)
                for each in plan.scripted:
                    yield from copy_by_script(cluster, each, partial(self._script, cluster))
                if (renaming := plan.renaming) is not None:
                    own = dict(plan.creation.instance.osparams)
                    given = self.osparams_private, self.osparams_secret
                    full = partial(complete, cluster, renaming.order, own, *given)
                    yield from rename_within(cluster, renaming, full)
            yield step

    def _script(self, cluster: Cluster, copy: ScriptCopy) -> ScriptOrder:
        return full_order(cluster, copy, self.osparams_private, self.osparams_secret)

    def result(self, plan: ImportPlan) -> list[str] | str:
        return self._maker(plan.creation).result(plan.creation)

    async def _look(self, cluster: Cluster) -> ExportReport:
        node = cluster.config.node(self.src_node)
        check_online(node)
        export = (self.src_path or self.instance_name).rstrip("/").rpartition("/")[2]
        return await cluster.call(Exports, node).show(export=export)

    def _maker(self, plan: CreatePlan) -> CreateInstance:
        """Return what knows the steps of a plan, which say everything."""
        return CreateInstance(
            instance_name=self.instance_name,
            disk_template=plan.instance.disk_template,
            osparams_private=self.osparams_private,
        )

    def _order(self, config: Config, report: ExportReport) -> CreateInstance:
        """Return what makes the instance; what was not said is as in the export."""
        was = read_description(report.config, report.name)
        if any(disk.adopt for disk in self.disks):
            raise InvalidRequest("Nothing is adopted by an import, which would overwrite it.")
        if self.nics and self.no_nics:
            raise InvalidRequest("Say which nics it shall have, or that it shall have none.")
        enabled = config.cluster.enabled_hypervisors
        same = was.hypervisor if was.hypervisor in enabled else enabled[0]
        hypervisor = self.hypervisor or same
        return CreateInstance(
            instance_name=self.instance_name,
            disk_template=self.disk_template or template_of(was),
            disks=self.disks or disks_of(was),
            nics=() if self.no_nics else self.nics or nics_of(config, was, self.instance_name),
            file_storage_dir=self.file_storage_dir,
            pnode=self.pnode,
            snode=self.snode,
            group_name=self.group_name,
            iallocator=self.iallocator,
            hypervisor=hypervisor,
            hvparams=hvparams_of(config, hypervisor, was) | self.hvparams,
            beparams=own_parameters(Backend, was.beparams, config.cluster.beparams) | self.beparams,
            os_type=was.os or None,
            osparams=dict(was.osparams) | self.osparams,
            osparams_private=self.osparams_private,
            no_install=True,
            start=self.start,
            tags=self.tags or was.tags,
            conflicts_check=self.conflicts_check,
            ignore_ipolicy=self.ignore_ipolicy,
        )
