"""Change an instance's parameters, nics and disks, and how its disks are kept."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.os_name import read_os_name
from common.model.parameters import edited
from common.model.template import DiskTemplate
from common.names import MiB
from coordinator.checks.parameters import bad_of_instance, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import keep_for_instance, read_parameters
from coordinator.operations.addresses import check_apart, check_connected, networks_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    ConflictsCheck,
    ForceVariant,
    IgnorePolicy,
    InstanceArgument,
    PrivateOsParameters,
    WaitForSync,
)
from coordinator.operations.instance.at_once import AtOnce
from coordinator.operations.instance.convert import Conversion, plan_conversion, read_provider
from coordinator.operations.instance.disk_changes import (
    DiskAction,
    DiskChange,
    DiskChanges,
    changed_disks,
    find_attached,
)
from coordinator.operations.instance.disk_steps import plan_disks
from coordinator.operations.instance.display_port import with_port
from coordinator.operations.instance.modification import Modification, modify
from coordinator.operations.instance.nic_changes import NicChange, changed_nics, named_networks
from coordinator.operations.instance.nic_steps import plan_nics
from coordinator.operations.instance.older_changes import in_three_parts
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.instance.reserved_changes import plan_reserved
from coordinator.operations.instance.runtime_memory import plan_memory
from coordinator.operations.instance.which import LAST
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Shorthand, Syntax, option
from coordinator.operations.placement.fit import check_policy
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import read_backend
from coordinator.operations.step import Step, record
from coordinator.operations.steps.changes import differing
from coordinator.operations.steps.checks import find_guest, may_run
from coordinator.operations.steps.definitions import check_is_there
from coordinator.operations.steps.scripts import check_not_blacklisted, lost_parameters
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State


@operation("OP_INSTANCE_SET_PARAMS")
class ModifyInstance(Operation[None, Modification], kw_only=True):
    """Change an instance's parameters, nics and disks.

    A guest that runs gets them when it next starts, but for disks and nics with --hotplug.
    """

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    beparams: Annotated[
        dict[str, Any],
        option(
            "-B",
            "--backend-parameters",
            help="memory=SIZE,vcpus=N,…; “default” resets one",
            syntax=Syntax.KEYVAL,
        ),
    ] = {}
    hvparams: Annotated[
        dict[str, Any],
        option(
            "-H",
            "--hypervisor-parameters",
            help="NAME=VALUE,…; “default” resets one",
            syntax=Syntax.KEYVAL,
        ),
    ] = {}
    osparams: Annotated[
        dict[str, Any],
        option(
            "-O",
            "--os-parameters",
            help="NAME=VALUE,…; “default” or -NAME takes one away",
            syntax=Syntax.KEYVAL,
        ),
    ] = {}
    osparams_private: PrivateOsParameters = {}
    os_name: Annotated[
        str | None, option("-o", "--os-type", help="OS definition; nothing is installed")
    ] = None
    force_variant: ForceVariant = False
    nics: Annotated[
        tuple[NicChange, ...],
        option(
            "--net",
            help="add, change or remove nics, by number, name or UUID; ip=none takes "
            "the address away",
            syntax=Syntax.CHANGES,
        ),
    ] = ()
    disks: Annotated[
        tuple[DiskChange, ...],
        option(
            "--disk",
            help="add, change, remove, attach or detach disks, by number, name or UUID",
            syntax=Syntax.CHANGES,
        ),
    ] = ()
    offline: Annotated[
        bool | None,
        option(
            "--offline",
            help="do not let it be started: it is only kept",
            syntax=Syntax.FLAG,
            shorthands=(Shorthand(("--online",), "let it be started again", value=False),),
        ),
    ] = None
    runtime_mem: Annotated[
        MiB | None,
        option(
            "-m",
            "--runtime-memory",
            help="memory that it uses while it runs, from minmem to maxmem; it gives the rest back",
        ),
    ] = None
    disk_template: Annotated[
        DiskTemplate | None,
        option("-t", "--disk-template", help="keep its disks in another way; it has to be stopped"),
    ] = None
    remote_node: Annotated[
        str | None, option("-n", "--node", help="with -t: the node for the second copy")
    ] = None
    ext_params: Annotated[
        dict[str, str],
        option(
            "-e",
            "--ext-params",
            help="with -t ext: provider=NAME, and what that is told of each disk",
            syntax=Syntax.KEYVAL,
        ),
    ] = {}
    expires: Annotated[
        str | None,
        option(
            "--expires", metavar="TIME", help="of what is only reserved: gone after 3d, or never"
        ),
    ] = None
    wait_for_sync: WaitForSync = True
    conflicts_check: ConflictsCheck = True
    ignore_ipolicy: IgnorePolicy = False
    hotplug: Annotated[
        bool,
        option(
            "--hotplug",
            help="change disks and nics of a guest that runs at once",
            syntax=Syntax.FLAG,
        ),
    ] = False
    hotplug_if_possible: Annotated[
        bool,
        option(
            "--hotplug-if-possible",
            help="at once where that can be, else at its next start",
            syntax=Syntax.FLAG,
        ),
    ] = False

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Take changes of devices as older clients write them, too."""
        devices = {name: in_three_parts(given[name]) for name in ("disks", "nics") if name in given}
        return given | devices

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes, room = list(config.nodes_of(instance)), []
        if self.disks:
            room = nodes
        if self.disk_template:
            others = [config.node(self.remote_node).uuid] if self.remote_node else []
            nodes, room = [*nodes, *others], [instance.primary_node, *others]
        come = [
            find_attached(config, each.values).uuid
            for each in self.disks
            if each.action is DiskAction.ATTACH
        ]
        networks = (
            {*networks_of(config, instance), *named_networks(config, self.nics)}
            if self.nics
            else ()
        )
        return wanted(instance=instance.name, nodes=nodes, room=room, disks=come, networks=networks)

    def question(self) -> str:
        gone = [str(c.disk) for c in self.disks if c.action is DiskAction.REMOVE]
        which = " and ".join("-1, the last one," if disk == str(LAST) else disk for disk in gone)
        name = self.instance_name
        return f"Delete disk {which} of {name}, with all the data on it?" if gone else ""

    async def prepare(self, cluster: Cluster, _: None) -> Modification:
        config = cluster.config
        before = config.instance(self.instance_name)
        node = config.nodes[before.primary_node]
        nics_before = config.nics_of(before)
        nics = changed_nics(cluster, before.name, nics_before, self.nics)
        after, conversion = with_port(cluster, self._changed(before, nics)), None
        self._check_os(after)
        await self._check_os_is_there(cluster, node)
        if before.forthcoming:
            return await self._of_reserved(cluster, before, after, nics)
        if self.expires is not None:
            reservation_of(before)
        if self.disk_template:
            after, conversion = await self._converted(cluster, after)
        else:
            self._check_converts_nothing()
        changes = changed_disks(cluster, after, self.disks) if self.disks else None
        if changes:
            after = replace(after, disks=tuple(disk.uuid for disk in changes.disks))
        same = not differing(before, after) and nics == nics_before and not _differ(changes)
        if same and not self.osparams_private and self.runtime_mem is None:
            raise InvalidRequest(f"Nothing to change on instance {before.name}.")
        disks = conversion.after if conversion else config.disks_of(before)
        planned = PlannedInstance(after, changes.disks if changes else disks)
        self._check_fits(config, planned, nics, node)
        # Nobody else gets their devices' numbers and addresses, or their space.
        promised = list(self._addresses(before, after, nics))
        if conversion or (changes and changes.made):
            promised.append(promise_of_space(planned))
        if promised:
            cluster.promise(*promised)
        found = None if node.offline else await find_guest(cluster, before, node)
        runs = may_run(found)
        self._check_stopped(before, node, runs=runs)
        amount = self.runtime_mem
        plan, at_once = None, AtOnce.of(must=self.hotplug, may=self.hotplug_if_possible)
        told = plan_nics(cluster, before, nics_before, nics, found, at_once) if self.nics else None
        if changes:
            plan = plan_disks(cluster, before, after, changes, found, at_once)
            if changes.made:
                await take_space(cluster, planned, [config.nodes[at.uuid] for at in plan.homes])
                cluster.promise(*promised)
        modification = Modification(
            before=before,
            after=after,
            conversion=conversion,
            disks=plan,
            nics=told,
            memory=plan_memory(cluster, after, found, amount) if amount is not None else None,
            nics_before=nics_before,
            nics_after=nics,
            is_confidential=bool(self.osparams_private),
            now=cluster.now(),
        )
        if runs and modification.waits_for_start:
            cluster.log(
                f"{before.name} runs, and goes on as it is: the change takes effect when it is "
                f"stopped and started, or by “gnt-instance reboot {before.name}”. A reboot from "
                "within the guest is not enough."
            )
        return modification

    def promises(self, plan: Modification) -> Iterable[Promise]:
        return plan.promises

    def recipe(self, cluster: Cluster, plan: Modification) -> Iterator[Step]:
        yield from modify(cluster, plan)
        if plan.is_confidential:
            # What they were before is in no journal, so they cannot become that again.
            yield record(
                f"change private parameters of {plan.after.name}",
                lambda state: self._keep_private(state, plan.after),
                point_of_no_return=True,
            )

    def result(self, plan: Modification) -> list[list[Any]]:
        """Return what has changed, as pairs of a name and a value, in Ganeti's words."""
        return plan.in_words()

    async def _of_reserved(
        self, cluster: Cluster, before: Instance, after: Instance, nics: tuple[Nic, ...]
    ) -> Modification:
        if self.offline is not None or self.osparams_private or self.runtime_mem is not None:
            raise InvalidRequest(
                f"{before.name} is only reserved: --offline, --online, private parameters and "
                "memory of what runs are for when it is there."
            )
        if self.ext_params:
            raise InvalidRequest(
                f"{before.name} is only reserved, and has no disks that could become a provider's."
            )
        modification = await plan_reserved(
            cluster,
            before,
            after,
            nics,
            expires=self.expires,
            template=self.disk_template,
            second=self.remote_node,
            disks=self.disks,
        )
        assert modification.reserved
        planned = PlannedInstance(modification.after, modification.reserved.after)
        home = cluster.config.nodes[modification.after.primary_node]
        self._check_fits(cluster.config, planned, nics, home)
        return modification

    def _addresses(
        self, before: Instance, after: Instance, nics: tuple[Nic, ...]
    ) -> Iterator[Promise]:
        port = after.network_port
        if self.nics or port != before.network_port:
            yield Promise(after.uuid, after.primary_node, nics=nics, port=port)

    async def _converted(self, cluster: Cluster, instance: Instance) -> tuple[Instance, Conversion]:
        assert self.disk_template
        if self.disks:
            raise InvalidRequest("Change the disks, or how they are kept, one after the other.")
        return await plan_conversion(
            cluster,
            instance,
            self.disk_template,
            self.remote_node,
            read_provider(self.ext_params),
            waits=self.wait_for_sync,
        )

    def _check_converts_nothing(self) -> None:
        if self.remote_node:
            raise InvalidRequest("A second copy is made with -t and a template that has one.")
        if self.ext_params:
            raise InvalidRequest("What a provider is told of disks goes with -t ext.")

    def _check_stopped(self, instance: Instance, node: Node, *, runs: bool) -> None:
        """Refuse what cannot be done while it runs."""
        name = instance.name
        if self.disk_template and runs:
            raise Conflict(f"Instance {name} runs on {node.name}; stop it first.")
        if self.offline and runs:
            raise Conflict(
                f"Instance {name} runs; stop it with “gnt-instance shutdown {name}” before it is "
                "marked offline."
            )

    def _keep_private(self, state: State, instance: Instance) -> list[Update]:
        if isinstance(self.osparams_private, str):
            raise lost_parameters()
        given = self.osparams_private
        return [*keep_for_instance(state, instance.uuid, instance.os, given)]

    def _check_os(self, after: Instance) -> None:
        """Check what needs no look at any node."""
        if self.os_name:
            read_os_name(self.os_name)
        if self.osparams_private and not after.os:
            raise InvalidRequest(
                f"Instance {after.name} has no operating system that could have parameters; say "
                "which, with -o."
            )
        if not isinstance(self.osparams_private, str):
            read_parameters(self.osparams_private, what="the private parameters")
        read_parameters(after.osparams, what="the parameters of its operating system")

    async def _check_os_is_there(self, cluster: Cluster, node: Node) -> None:
        if not self.os_name:
            return
        check_not_blacklisted(cluster.config, self.os_name)
        if node.offline:
            cluster.log(
                f"Node {node.name} is offline, so whether it has {self.os_name} was not looked at."
            )
            return
        await check_is_there(cluster, node, self.os_name, may_be_unknown=self.force_variant)

    def _changed(self, present: Instance, nics: Sequence[Nic]) -> Instance:
        state = present.admin_state
        if self.offline:
            state = AdminState.OFFLINE
        elif self.offline is False and state is AdminState.OFFLINE:
            state = AdminState.DOWN
        return replace(
            present,
            admin_state=state,
            beparams=edited(present.beparams, read_backend(self.beparams)),
            hvparams=edited(present.hvparams, self.hvparams),
            osparams=edited(present.osparams, self.osparams),
            os=present.os if self.os_name is None else self.os_name,
            nics=tuple(nic.uuid for nic in nics),
        )

    def _check_fits(
        self, config: Config, planned: PlannedInstance, nics: Sequence[Nic], node: Node
    ) -> None:
        """Check what the instance will be, but for what was bad before and is left as it is."""
        after = planned.instance
        changed = config.apply([Put(after), *map(Put, planned.disks), *map(Put, nics)])
        known = bad_of_instance(config, after.uuid)
        check_parameters(bad_of_instance(changed, after.uuid), known=known)
        new_or_changed = [nic for nic in nics if config.nics.get(nic.uuid) != nic]
        check_connected(config, new_or_changed, node.uuid)
        if self.conflicts_check:
            check_apart(config, node.group, new_or_changed)
        if (self.beparams or self.disks) and not self.ignore_ipolicy:
            check_policy(changed, planned, node)


def _differ(changes: DiskChanges | None) -> bool:
    return changes is not None and changes.before != changes.after
