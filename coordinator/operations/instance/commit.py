"""Make an instance that has been reserved."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NotFound
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.parameters import edited
from common.names import MiB
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import networks_of
from coordinator.operations.base import variant
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import POOL, NicRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.display_port import with_port
from coordinator.operations.instance.new_instance import CreatePlan
from coordinator.operations.instance.place import Place, place_of
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.locking import wanted
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import backend, guest_spec, read_backend
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK
from coordinator.state.rows import Put, Update
from coordinator.state.state import State


@variant("commit")
class CommitInstance(CreateInstance, kw_only=True):
    """Make an instance that is reserved, where its room is kept.

    What takes room is as it was reserved; who says it again has to say the same. What takes none,
    as its operating system, can still be said.
    """

    takes_reservations: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {"instance_name": "which one it is: its name, or its UUID"}

    def locks(self, config: Config, place: Place) -> Wanted:  # noqa: ARG002 -- where it is by then
        instance = config.instance(self.instance_name)
        nodes = config.nodes_of(instance)
        networks = networks_of(config, instance)
        return wanted(instance=instance.name, nodes=nodes, room=nodes, networks=networks)

    async def choose(self, cluster: Cluster) -> Place:
        config = cluster.config
        nodes = config.nodes_of(self._find(config))
        return place_of([config.nodes[uuid].ref for uuid in nodes])

    async def prepare(self, cluster: Cluster, place: Place) -> CreatePlan:  # noqa: ARG002
        config = cluster.config
        reserved = self._find(config)
        if self.mode != "create":
            raise InvalidRequest("What is reserved is made anew, not from another cluster.")
        self._check_rest(config)
        self._check_complete(config, reserved)
        self._check_same(config, reserved)
        disks, nics = config.disks_of(reserved), config.nics_of(reserved)
        instance = replace(
            reserved,
            reservation=None,
            admin_state=AdminState.UP if self.start else AdminState.DOWN,
            os=self.os_type or reserved.os,
            hvparams=edited(reserved.hvparams, self.hvparams),
            osparams=edited(reserved.osparams, self.osparams),
            tags=tuple(sorted({*reserved.tags, *self.tags})),
            mtime=cluster.now(),
            serial_no=reserved.serial_no + 1,
        )
        instance = with_port(cluster, instance)
        nodes = [config.nodes[uuid] for uuid in config.nodes_of(reserved)]
        for each in nodes:
            check_online(each)
        node, *others = (each.ref for each in nodes)
        plan = CreatePlan(
            node=node,
            others=tuple(others),
            instance=instance,
            disks=disks,
            nics=nics,
            guest=guest_spec(config, instance, disks, nics),
            start=self.start,
            attach=kind_of(instance.disk_template).before_start((node, *others)),
            reserved=reserved,
        )
        cluster.promise(*self.promises(plan))
        return await self._startable(cluster, plan)

    def intends(self, cluster: Cluster, place: Place) -> Iterable[Promise]:  # noqa: ARG002
        return ()  # its room is kept already

    def promises(self, plan: CreatePlan) -> Iterable[Promise]:
        """Return the memory that is kept already, as it is if all is undone; and a new port."""
        instance, memory = plan.instance, plan.guest.memory
        return [Promise(instance.uuid, plan.node.uuid, memory, port=instance.network_port)]

    def _find(self, config: Config) -> Instance:
        instance = config.instance(self.instance_name)
        reservation_of(instance)
        return instance

    def _check_complete(self, config: Config, reserved: Instance) -> None:
        """Refuse what lacks something that every instance has."""
        name = reserved.name
        if not reserved.is_named:
            raise Conflict(
                f"The reserved instance {name} has no name yet; “gnt-instance rename {name} NAME” "
                "gives it one.",
                instance=name,
            )
        if not reservation_of(reserved).has_template:
            raise Conflict(
                f"It was not said yet how the disks of the reserved instance {name} are kept; "
                f"“gnt-instance modify -t TEMPLATE {name}” says it (diskless: it has none).",
                instance=name,
            )
        kind = kind_of(reserved.disk_template)
        kind.check_number(config.disks_of(reserved))

    def _check_same(self, config: Config, reserved: Instance) -> None:
        """Refuse to make something else than was reserved.

        Raises:
            InvalidRequest: says what differs.
        """
        for what, said, kept in self._said_again(config, reserved):
            if said != kept:
                raise InvalidRequest(
                    f"Instance {reserved.name} was reserved with {what} {kept}, and is to be made "
                    f"with {said}; leave that out, or change the reservation first, with "
                    f"“gnt-instance modify {reserved.name}”.",
                    instance=reserved.name,
                )

    def _said_again(self, config: Config, reserved: Instance) -> Iterator[tuple[str, Any, Any]]:
        """Yield what was said of what takes room: its name, and how it is said and kept."""
        if self.disk_template:
            yield "the disk template", self.disk_template, reserved.disk_template
        if self.disks:
            kept = [disk.size for disk in config.disks_of(reserved)]
            yield "disks of", _sizes([disk.size_mib for disk in self.disks]), _sizes(kept)
        if any(disk.spindles is not None for disk in self.disks):
            told = [disk.spindle_count for disk in self.disks]
            yield "spindles of", told, [disk.spindles for disk in config.disks_of(reserved)]
        if self.file_storage_dir:
            kind = kind_of(reserved.disk_template)
            for disk in config.disks_of(reserved):
                directory = kind.wish_of(config.cluster, disk.backing).directory
                yield "files in", self.file_storage_dir.rstrip("/"), directory or "no directory"
        if any(nic != NicRequest() for nic in self.nics):  # Ganeti's commands send one that is so
            nics = config.nics_of(reserved)
            yield "a number of nics of", len(self.nics), len(nics)
            for asked, nic in zip(self.nics, nics, strict=True):
                yield from _nic_said_again(config, asked, nic)
        layer = edited(reserved.beparams, read_backend(self.beparams))
        changed = backend(config, replace(reserved, beparams=layer))
        for name in ("maxmem", "minmem", "vcpus", "spindle_use"):
            yield name, getattr(changed, name), getattr(backend(config, reserved), name)
        if self.hypervisor:
            yield "the hypervisor", self.hypervisor, reserved.hypervisor
        if self.pnode:
            named = [config.node(name).name for name in filter(None, (self.pnode, self.snode))]
            nodes = [config.nodes[uuid].name for uuid in config.nodes_of(reserved)]
            yield "the nodes", ", ".join(named), ", ".join(nodes)
        if self.group_name:
            home = config.nodes[reserved.primary_node].group
            yield "the group", config.group(self.group_name).name, config.groups[home].name

    def _added(self, state: State, plan: CreatePlan) -> list[Update]:
        if plan.instance.uuid not in state.config.instances:
            raise NotFound(f"The reserved instance {plan.instance.name} is gone.")
        return [Put(plan.instance)]

    def _taken_back(self, plan: CreatePlan) -> list[Update]:
        assert plan.reserved
        return [Put(plan.reserved)]


def _sizes(sizes: Iterable[MiB]) -> str:
    return ", ".join(f"{size} MiB" for size in sizes) or "none"


def _nic_said_again(config: Config, asked: NicRequest, nic: Nic) -> Iterator[tuple[str, Any, Any]]:
    if mac := asked.wanted_mac():
        yield "the address", mac, nic.mac
    if asked.ip and asked.ip != POOL:
        yield "the address", asked.ip, nic.ip or "none"
    if asked.network:
        kept = config.networks.get(nic.network)
        yield "the network", config.get(NETWORK, asked.network).name, kept.name if kept else "none"
    for name, value in asked.parameters().items():
        yield f"the nic's {name}", value, nic.nicparams.get(name, "as the cluster has it")
