"""Change an instance's parameters, nics and disks, and how its disks are kept."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import Node
from coordinator.checks.parameters import bad_of_instance, check_parameters
from coordinator.operating_systems.parameters import DEFAULT
from coordinator.operations.addresses import check_apart, check_connected
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.at_once import AtOnce
from coordinator.operations.instance.convert import (
    Conversion,
    Keeping,
    plan_conversion,
    read_provider,
    with_disks,
)
from coordinator.operations.instance.disk_changes import DiskChanges, changed_disks
from coordinator.operations.instance.disk_steps import plan_disks
from coordinator.operations.instance.display_port import with_port
from coordinator.operations.instance.instance_change import InstanceChange
from coordinator.operations.instance.modification import Modification, modify
from coordinator.operations.instance.nic_changes import changed_nics
from coordinator.operations.instance.nic_steps import plan_nics
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.instance.reserved_changes import plan_reserved
from coordinator.operations.instance.runtime_memory import plan_memory
from coordinator.operations.placement.apart import check_spindles
from coordinator.operations.placement.fit import check_policy
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.promises import PlannedInstance, Promise, naming
from coordinator.operations.step import Step, record
from coordinator.operations.steps.checks import find_guest, may_run
from coordinator.operations.steps.definitions import check_is_parameter, check_is_there
from coordinator.operations.steps.scripts import check_not_blacklisted
from coordinator.state.config import Config
from coordinator.state.rows import Put


@operation("OP_INSTANCE_SET_PARAMS")
class ModifyInstance(InstanceChange, kw_only=True):
    """Change an instance's parameters, nics and disks.

    A guest that runs gets them when it next starts, but for disks and nics with --hotplug.
    """

    async def prepare(self, cluster: Cluster, _: None) -> Modification:
        before = cluster.config.instance(self.instance_name)
        node, nics_before = (
            cluster.config.nodes[before.primary_node],
            cluster.config.nics_of(before),
        )
        after = self.changed(before)
        self.check_words(after)
        await self._check_os_is_there(cluster, node)
        await self._check_os_parameters(cluster, node, after)
        conversion = None if before.forthcoming else await self._conversion(cluster, before)
        if conversion and self.disk_template:
            after = with_disks(after, self.disk_template, conversion.after)
        # What is given out from here on is promised before a node is asked: nobody else gets it.
        nics = changed_nics(cluster, before.name, nics_before, self.nics)
        after = with_port(cluster, replace(after, nics=tuple(nic.uuid for nic in nics)))
        if before.forthcoming:
            return await self._of_reserved(cluster, before, after, nics)
        changes = changed_disks(cluster, after, self.disk_changes) if self.disks else None
        if changes:
            after = with_disks(after, after.disk_template, changes.disks)
        decided = Modification(
            before=before,
            after=after,
            conversion=conversion,
            nics_before=nics_before,
            nics_after=nics,
            is_confidential=bool(self.osparams_private),
            now=cluster.now(),
        )
        self._check_differs(decided, changes)
        self._take(cluster, decided, changes)
        return await self._with_guest(cluster, decided, changes)

    def promises(self, plan: Modification) -> Iterable[Promise]:
        return plan.promises

    def recipe(self, cluster: Cluster, plan: Modification) -> Iterator[Step]:
        yield from modify(cluster, plan)
        if plan.is_confidential:
            # What they were before is in no journal, so they cannot become that again.
            yield record(
                f"change private parameters of {plan.after.name}",
                lambda state: self.keep_private(state, plan.after),
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
        if self.rate_limit:
            raise InvalidRequest(
                f"{before.name} is only reserved, and has no data to copy: leave out --rate-limit."
            )
        if self.disk_template and self.file_storage_dir:
            raise InvalidRequest(
                f"{before.name} is only reserved, and keeps room and not files: say the directory "
                "when disks are added to it, or reserve it anew."
            )
        modification = await plan_reserved(
            cluster,
            before,
            after,
            nics,
            expires=self.expires,
            template=self.disk_template,
            second=self.remote_node,
            disks=self.disk_changes,
        )
        assert modification.reserved
        planned = PlannedInstance(modification.after, modification.reserved.after)
        home = cluster.config.nodes[modification.after.primary_node]
        self._check_fits(cluster.config, planned, nics, home)
        return modification

    def _check_differs(self, decided: Modification, changes: DiskChanges | None) -> None:
        if decided.differs or (changes and changes.before != changes.after):
            return
        if not self.osparams_private and self.runtime_mem is None:
            raise InvalidRequest(f"Nothing to change on instance {decided.before.name}.")

    def _take(self, cluster: Cluster, decided: Modification, changes: DiskChanges | None) -> None:
        """Check what the instance will be, and have others count with what is given out to it."""
        config, before, after = cluster.config, decided.before, decided.after
        disks = decided.conversion.after if decided.conversion else config.disks_of(before)
        planned = PlannedInstance(after, changes.disks if changes else disks)
        self._check_fits(config, planned, decided.nics_after, config.nodes[after.primary_node])
        promised = list(decided.promises)
        if changes and changes.made:
            promised.append(naming(planned))
        cluster.promise(*promised)

    async def _with_guest(
        self, cluster: Cluster, decided: Modification, changes: DiskChanges | None
    ) -> Modification:
        """Plan what its guest is told, and see that its nodes have room for new disks."""
        config, before, after = cluster.config, decided.before, decided.after
        node = config.nodes[before.primary_node]
        found = None if node.offline else await find_guest(cluster, before, node)
        runs, memory = may_run(found), self.runtime_mem
        self.check_stopped(before, node, runs=runs)
        at_once = AtOnce.of(must=self.hotplug, may=self.hotplug_if_possible)
        plan = decided
        if self.nics:
            told = plan_nics(cluster, before, plan.nics_before, plan.nics_after, found, at_once)
            plan = replace(plan, nics=told)
        if changes:
            disks = plan_disks(cluster, before, after, changes, found, at_once)
            plan = replace(plan, disks=disks)
            if changes.made:
                homes = [config.nodes[at.uuid] for at in disks.homes]
                check_spindles(config, node, [changes.disks[number] for number in changes.made])
                space = promise_of_space(PlannedInstance(after, changes.disks))
                await take_space(cluster, space, homes, for_new=True)
                cluster.promise(*plan.promises)
        if memory is not None:
            plan = replace(plan, memory=plan_memory(cluster, after, found, memory))
        if runs and plan.waits_for_start:
            cluster.log(
                f"{before.name} runs, and goes on as it is: the change takes effect when it is "
                f"stopped and started, or by “gnt-instance reboot {before.name}”. A reboot from "
                "within the guest is not enough."
            )
        return plan

    async def _conversion(self, cluster: Cluster, instance: Instance) -> Conversion | None:
        """Return how its disks become others; None if they are kept as they are."""
        if self.expires is not None:
            reservation_of(instance)
        if not self.disk_template:
            self.check_converts_nothing()
            return None
        if self.disks:
            raise InvalidRequest("Change the disks, or how they are kept, one after the other.")
        wish = replace(read_provider(self.ext_params), directory=self.file_storage_dir or "")
        keeping = Keeping(
            template=self.disk_template,
            secondary=self.remote_node,
            wish=wish,
            waits=self.wait_for_sync,
            rate=self.rate_limit,
        )
        return await plan_conversion(cluster, instance, keeping)

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

    async def _check_os_parameters(self, cluster: Cluster, node: Node, after: Instance) -> None:
        """Refuse what its operating system does not know; to take such a one away is right."""
        private = {} if isinstance(self.osparams_private, str) else self.osparams_private
        given = {name for name in self.osparams if name in after.osparams}
        given |= {name for name in private if private[name] != DEFAULT}
        if given and after.os and not node.offline:
            await check_is_parameter(cluster, node, after.os, given)

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
