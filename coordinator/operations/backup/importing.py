"""Make an instance from an export."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from common.errors import InvalidRequest
from common.messages import Order, from_builtins, to_builtins
from common.model.disk import DumpBacking
from common.model.hypervisors import HYPERVISORS
from common.model.node import NodeRef
from common.model.parameters import Backend, Layer, settled, sound
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceName, MiB
from common.noderpc.copies import Compression
from common.noderpc.disks import DiskSpec
from common.noderpc.exports import ExportReport, Exports
from coordinator.disks.holding import Handover, none, sole
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.backup.description import Description, read_description
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import POOL, DiskRequest, NicRequest
from coordinator.operations.fields import (
    OS_SIZE,
    AllocatorOption,
    BackendParameters,
    CompressionOption,
    ConflictsCheck,
    HypervisorParameters,
    IgnorePolicy,
    OsParameters,
    PrimaryNodeOption,
    PrivateOsParameters,
    RateOption,
    SecondaryNodeField,
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
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


class ImportPlan(Order):
    creation: CreatePlan
    copies: tuple[DiskCopy, ...]


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
    no_nics: Annotated[bool, option("--no-nics", help="without any", syntax=Syntax.FLAG)] = False
    pnode: PrimaryNodeOption = None
    snode: SecondaryNodeField = None
    iallocator: AllocatorOption = None
    hypervisor: Annotated[
        str | None, hidden("name of the hypervisor; default: as it was, if that is enabled")
    ] = None
    hvparams: HypervisorParameters = {}
    beparams: BackendParameters = {}
    osparams: OsParameters = {}
    osparams_private: PrivateOsParameters = {}
    start: Annotated[
        bool, option("--start", help="start it when its disks are filled", syntax=Syntax.FLAG)
    ] = False
    tags: TagsOption = ()
    conflicts_check: ConflictsCheck = True
    compress: CompressionOption = Compression.NONE
    rate_limit: RateOption = 0
    ignore_ipolicy: IgnorePolicy = False

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
        creation = await self._order(config, report).prepare(cluster, place)
        dumps = _dumps(report, read_description(report.config, report.name))
        kind, node = kind_of(creation.instance.disk_template), config.node(self.src_node).ref
        if len(dumps) > len(creation.disks):
            raise InvalidRequest(
                f"The export {report.name} has {len(dumps)} disks, and {self.instance_name} is to "
                f"have {len(creation.disks)}."
            )
        for index, ((name, size), disk) in enumerate(zip(dumps, creation.disks, strict=False)):
            if disk.size < size:
                raise InvalidRequest(
                    f"Disk {index} is to have {disk.size} MiB; the one in the export, {name}, has "
                    f"{size} MiB."
                )
        copies = tuple(
            DiskCopy(
                index=index,
                source=_source(cluster, report.name, name, spec, size, node),
                target=side_of(kind, place.nodes, spec),
                compression=self.compress,
                rate=self.rate_limit,
            )
            for index, ((name, size), spec) in enumerate(
                zip(dumps, creation.guest.disks, strict=False)
            )
        )
        return ImportPlan(creation=creation, copies=copies)

    def promises(self, plan: ImportPlan) -> Iterable[Promise]:
        return self._maker(plan.creation).promises(plan.creation)

    def recipe(self, cluster: Cluster, plan: ImportPlan) -> Iterator[Step]:
        has_data = False
        for step in self._maker(plan.creation).recipe(cluster, plan.creation):
            if step.edit and not has_data:  # its disks are there; now it becomes an instance
                has_data = True
                for copy in plan.copies:
                    yield copy_disk(cluster, copy)
            yield step

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
            disk_template=self.disk_template or _template(was),
            disks=self.disks or tuple(DiskRequest(size=d.size, name=d.name) for d in was.disks),
            nics=() if self.no_nics else self.nics or _nics(config, was, self.instance_name),
            pnode=self.pnode,
            snode=self.snode,
            iallocator=self.iallocator,
            hypervisor=hypervisor,
            hvparams=_hvparams(config, hypervisor, was) | self.hvparams,
            beparams=_own(Backend, was.beparams, config.cluster.beparams) | self.beparams,
            os_type=was.os or None,
            osparams=dict(was.osparams) | self.osparams,
            osparams_private=self.osparams_private,
            no_install=True,
            start=self.start,
            tags=self.tags or was.tags,
            conflicts_check=self.conflicts_check,
            ignore_ipolicy=self.ignore_ipolicy,
        )


def _dumps(report: ExportReport, was: Description) -> list[tuple[str, MiB]]:
    """Return the files in which disks are, with their sizes.

    Raises:
        InvalidRequest: one is missing, or is not what was on a disk as a whole.
    """
    for disk in was.disks:
        if disk.dump not in report.dumps:
            raise InvalidRequest(
                f"The export {report.name} lacks the file {disk.dump}, which it names."
            )
        if not was.is_whole_disks and report.dumps[disk.dump] != disk.size:
            raise InvalidRequest(
                f"What is in the file {disk.dump} of the export {report.name} was made by a script "
                f"of the instance's operating system, {was.os or 'which is not told'}: it is not "
                f"as large as the disk was. Such exports cannot be imported."
            )
    return [(disk.dump, report.dumps[disk.dump]) for disk in was.disks]


def _source(
    cluster: Cluster, export: str, name: str, disk: DiskSpec, size: MiB, node: NodeRef
) -> Side:
    backing = DumpBacking(export=export, name=name, is_finished=True)
    spec = DiskSpec(
        id=DiskId(cluster.new_uuid()), instance=disk.instance, size=size, backing=backing
    )
    attach, detach = Handover(do=sole(node)), Handover(do=none(node))
    return Side(node=node, disk=spec, attach=attach, detach=detach, may_be_left=True)


def _template(was: Description) -> DiskTemplate:
    try:
        return DiskTemplate(was.disk_template)
    except ValueError as error:
        raise InvalidRequest(
            f"The export does not say how disks were kept (“{was.disk_template}”); say how they "
            "shall be, with -t."
        ) from error


def _nics(config: Config, was: Description, name: InstanceName) -> tuple[NicRequest, ...]:
    return tuple(_nic(config, nic, keep=was.name == name) for nic in was.nics)


def _nic(config: Config, values: Mapping[str, str], *, keep: bool) -> NicRequest:
    """Return a nic as it was; another instance gets other addresses.

    A network that is not there any more, or that is another cluster's, is left out.
    """
    own = {key: value for key, value in values.items() if key != "mac" or keep}
    network = config.find(NETWORK, own.pop("network", ""))
    if network:  # which says how its nics are plugged in
        own = {key: value for key, value in own.items() if key not in ("mode", "link", "vlan")}
        own["network"] = network.uuid
        if "ip" in own and not keep:
            own["ip"] = POOL
    return from_builtins(own, NicRequest, what="a nic of the export")


def _hvparams(config: Config, hypervisor: str, was: Description) -> dict[str, Any]:
    if hypervisor not in HYPERVISORS or was.hypervisor != hypervisor:
        return {}
    return _own(HYPERVISORS[hypervisor], was.hvparams, config.cluster.hvparams.get(hypervisor, {}))


def _own(kind: type[Order], said: Mapping[str, str], ours: Layer) -> dict[str, Any]:
    """Return the parameters that are known here and differ from the cluster's."""
    base = sound(kind, ours)
    usual, own = to_builtins(settled(kind, base)), {}
    for field in msgspec.structs.fields(kind):
        text = said.get(field.name)
        if text is None:
            continue
        with suppress(msgspec.ValidationError):  # what it meant there means nothing here
            value = to_builtins(msgspec.convert(text, field.type, strict=False))
            if value != usual[field.name]:
                own[field.name] = value
    fitting = to_builtins(settled(kind, base, own))
    return {name: value for name, value in own.items() if fitting[name] == value}
