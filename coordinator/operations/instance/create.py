"""Make a new instance."""

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from common.errors import Conflict
from common.model.disk import Disk
from common.model.hypervisors import HYPERVISORS
from common.model.instance import Instance
from common.model.nic import Nic
from common.names import MiB
from common.noderpc.instances import Instances
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.checks.parameters import bad_of_nics, check_parameters
from coordinator.disks.kinds import kind_of
from coordinator.disks.tpm import check_tpm
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import (
    forget_instance,
    keep_for_instance,
)
from coordinator.operations.addresses import check_apart, check_connected
from coordinator.operations.backup import receiving
from coordinator.operations.backup.receiving import plan_receiving, receive_disks
from coordinator.operations.backup.trust import trust_of
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import (
    check_macs,
)
from coordinator.operations.instance.adoption import (
    adopt_disk,
    find_adopted,
    sized,
    where_found,
)
from coordinator.operations.instance.display_port import with_port
from coordinator.operations.instance.new_instance import CreatePlan, NewInstance
from coordinator.operations.instance.place import Place, another_if_stale, named_place, place_of
from coordinator.operations.locking import wanted
from coordinator.operations.placement.allocators import (
    BUILT_IN,
    RequestType,
    allocators_for,
)
from coordinator.operations.placement.apart import check_spindles
from coordinator.operations.placement.choose import place_new
from coordinator.operations.placement.fit import check_policy, check_still_fits, promise_of
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import guest_spec
from coordinator.operations.step import Step, record
from coordinator.operations.steps.checks import check_takes_instances, warn_of_groups
from coordinator.operations.steps.definitions import check_is_there
from coordinator.operations.steps.disks import create_disk
from coordinator.operations.steps.guests import start_guest
from coordinator.operations.steps.mirrors import join_copies, let_go
from coordinator.operations.steps.scripts import (
    ScriptRun,
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


@operation("OP_INSTANCE_CREATE")
class CreateInstance(NewInstance, kw_only=True):
    """Create an instance with its disks and nics, and start it."""

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
        plan = await self.prepare_unnamed(cluster, place)
        # What is installed was checked with its parameters; the rest is recorded, and has to be
        # there as well: it is run at a renaming, and named in lists.
        if (os := plan.instance.os) and plan.install is None and self.mode != receiving.MODE:
            await check_is_there(cluster, plan.node, os, may_be_unknown=self.force_variant)
        return plan

    async def prepare_unnamed(self, cluster: Cluster, place: Place) -> CreatePlan:
        """Prepare it, whether or not its node has the operating system that is only recorded."""
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
        warn_of_groups(cluster, self.instance_name, nodes)
        node = nodes[0]
        found = await find_adopted(cluster, kind, node, self.disks)
        uuids = [each.uuid for each in nodes]
        instance, disks, nics = self._objects(cluster, uuids, sized(self.disks, found))
        disks, instance = where_found(disks, found), with_port(cluster, instance)
        check_spindles(config, node, disks)
        taken = PlannedInstance(instance, () if found else disks, group=self.group(config))
        adopted = disks if found else ()
        # While nodes are asked nobody else is given the numbers and addresses of its devices.
        promise = Promise(instance.uuid, node.uuid, disks=disks)
        if place.allocator:
            promise = promise_of(config, taken, nodes)._replace(disks=adopted)
        cluster.promise(promise._replace(nics=nics, port=instance.network_port))
        check_connected(config, nics, node.uuid)
        check_parameters(bad_of_nics(config, instance, nics))
        if self.conflicts_check:
            check_apart(config, node.group, nics)
        if not self.ignore_ipolicy:
            check_policy(config, PlannedInstance(instance, disks), node)
        guest = guest_spec(config, instance, disks, nics)
        with another_if_stale(cluster, place):
            built_in = place.allocator == BUILT_IN
            await check_still_fits(
                cluster, taken, nodes, built_in=built_in, nics=nics, adopted=adopted
            )
        comes = None
        if self.mode == receiving.MODE:
            subject = subject_of(config, instance, disks, nics, guest, place.nodes)
            comes = await plan_receiving(
                cluster, self._source, kind, nodes[0], place.nodes, subject
            )
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
        wanted = HYPERVISORS[plan.guest.hypervisor].disk_of_tpm(plan.guest.parameters)
        check_tpm(plan.guest.name, wanted, plan.disks)
        await cluster.call(Instances, plan.node).check_startable(guest=plan.guest)
        if (install := self._installation(cluster, plan)) is not None:
            order = self._script(cluster, plan, install)
            await cluster.call(OperatingSystems, plan.node).check(order=order)
        if plan.receiving and (reading := plan.receiving.script):
            order = self._full(cluster, plan, replace(reading.order, disk=0, may_be_unknown=True))
            await cluster.call(OperatingSystems, plan.node).check(order=order)
        return replace(plan, install=install)

    def on(self, place: Place) -> "CreateInstance":
        """Return the same order for nodes that were chosen."""
        secondary = place.others[0].name if place.others else None
        return replace(self, pnode=place.node.name, snode=secondary)

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
            full = partial(self._full, cluster, plan)
            yield from receive_disks(cluster, plan.instance.name, plan.receiving, added, full)
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

    def _script(self, cluster: Cluster, plan: CreatePlan, install: ScriptRun) -> ScriptOrder:
        return self._full(cluster, plan, install.order)

    def _full(self, cluster: Cluster, plan: CreatePlan, order: ScriptOrder) -> ScriptOrder:
        """Return the order of a script with all its parameters."""
        given = (self.osparams_private, self.osparams_secret)
        return complete(cluster, order, plan.instance.osparams, *given)

    def _kept(self, state: State, plan: CreatePlan) -> list[Put | Delete]:
        """Return what keeps its private parameters."""
        instance, given = plan.instance, self.osparams_private
        if isinstance(given, str):
            raise lost_parameters()
        return keep_for_instance(state, instance.uuid, instance.os, given) if given else []

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
