"""What operators do by chance: orders for instances, nodes and jobs, given to whoever is master."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from common.errors import GntError
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB, NodeName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.base import Operation
from coordinator.operations.cluster.verify_disks import VerifyDisks
from coordinator.operations.instance.disk_changes import DiskAction, DiskChange
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.remove_snapshot import RemoveSnapshot
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.rollback import RollBack
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.migrate import MigrateNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.operations.test.delay import Delay
from tests.sim.invariants import Invariants
from tests.sim.later_orders import later_order
from tests.sim.settings import added, changed, create, removed
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator
from tests.support.image import ip_of

ORDERS_EVERY_S = 3.0
PATIENCE_S = 60.0
FEWEST_NODES = 3

Order = Operation[Any, Any]


class Operators:
    """Give orders; ``note`` is told what comes of each."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        random: Random,
        invariants: Invariants,
        note: Callable[[str], None],
    ) -> None:
        self._cluster, self._random = cluster, random
        self._invariants, self._note = invariants, note

    async def give_orders(self) -> None:
        """Go on for ever."""
        while True:
            await asyncio.sleep(self._random.expovariate(1 / ORDERS_EVERY_S))
            masters = self._cluster.masters()
            if not masters:
                continue
            master = self._random.choice(masters)
            if self._random.random() < 0.15:
                await self._about_a_job(master)
            else:
                await self.order(master, self._some_order())

    async def order(self, master: Coordinator, order: Order, **common: Any) -> JobId | None:
        """Submit a job; return its number if it was taken."""
        sent = order.to_input() | common
        try:
            async with asyncio.timeout(PATIENCE_S):
                number = JobId(await master.luxi("SubmitJob", [sent]))
        except (GntError, OSError, TimeoutError) as error:
            self._note(f"{master.name} refuses {order.summary()}: {error}")
            return None
        self._note(f"{master.name} takes {order.summary()} as job {number}")
        self._invariants.takes(number, sent)
        return number

    def _some_order(self) -> Order:
        chance = self._random.random()
        if chance < 0.6:
            return self._of_an_instance()
        if chance < 0.8:
            return self._later(self._cluster.masters())
        return self._of_a_node()

    def _of_an_instance(self) -> Order:
        name = InstanceName(f"web{self._random.randrange(4)}")
        target = self._random.choice(self._cluster.names)
        templates = (DiskTemplate.FILE, DiskTemplate.SHAREDFILE, DiskTemplate.PLAIN)
        template = self._random.choice(templates)
        make: list[Callable[[], Order]] = [
            lambda: create(name),
            lambda: create(name, template=DiskTemplate.DRBD),
            lambda: create(name, template=DiskTemplate.FILE),
            lambda: create(name, template=DiskTemplate.PLAIN),
            lambda: replace(create(name, template=template), os_type="noop"),
            lambda: replace(create(name, template=DiskTemplate.DRBD), os_type="debian+stable"),
            lambda: ReinstallInstance(instance_name=name, os_type="debian+testing"),
            lambda: MoveInstance(instance_name=name, target_node=NodeName(target)),
            lambda: ModifyInstance(instance_name=name, disk_template=template),
            lambda: ExportInstance(instance_name=name, target_node=target),
            lambda: ExportInstance(instance_name=name, target_node=target, shutdown=False),
            lambda: self._of_snapshots(name),
            lambda: MigrateInstance(instance_name=name),
            lambda: MigrateInstance(instance_name=name, target_node=target),
            lambda: MigrateInstance(instance_name=name, cleanup=True),
            lambda: FailOverInstance(instance_name=name, target_node=target),
            lambda: FailOverInstance(instance_name=name),
            lambda: ReplaceDisks(instance_name=name, on_primary=True),
            lambda: ReplaceDisks(instance_name=name, on_secondary=True),
            lambda: ReplaceDisks(instance_name=name, remote_node=target),
            lambda: RemoveInstance(instance_name=name),
            lambda: ShutDownInstance(instance_name=name),
            lambda: StartInstance(instance_name=name),
            lambda: GrowDisk(instance_name=name, disk=-1, amount=MiB(self._random.randrange(64))),
            lambda: self._of_disks(name),
            lambda: self._of_nics(name),
            lambda: Delay(duration=self._random.uniform(0, 10)),
        ]
        return self._random.choice(make)()

    def _later(self, masters: list[Coordinator]) -> Order:
        instances = masters[0].running.store.state.config.sorted_instances() if masters else ()
        return later_order(self._random, self._cluster.names, instances)

    def _of_snapshots(self, name: InstanceName) -> Order:
        kind = self._random.choice((TakeSnapshot, RollBack, RemoveSnapshot))
        return kind(instance_name=name, name=f"kept{self._random.randrange(2)}")

    def _of_nics(self, name: InstanceName) -> Order:
        """Give an instance a nic, take one, or give one another address."""
        change = self._random.choice((added(-1), removed(-1), changed(-1, {"mac": "auto"})))
        hotplug = self._random.random() < 0.7
        return ModifyInstance(instance_name=name, nics=(change,), hotplug=hotplug)

    def _of_disks(self, name: InstanceName) -> Order:
        """Give an instance a disk, take one, or detach one; attach what has been detached."""
        chance, masters = self._random.random(), self._cluster.masters()
        detached = masters[0].running.store.state.config.detached_disks() if masters else ()
        changes: list[tuple[str, dict[str, Any]]] = [
            ("add", {"size": 32, "name": f"disk{self._random.randrange(3)}"}),
            ("remove", {}),
            ("detach", {}),
            *(("attach", {"uuid": disk.uuid}) for disk in detached[:2]),
        ]
        action, values = self._random.choice(changes)
        change = DiskChange(action=DiskAction(action), disk=-1, values=values)
        return ModifyInstance(instance_name=name, disks=(change,), hotplug=chance < 0.7)

    def _of_a_node(self) -> Order:
        """Change the pool of candidates or the cluster; a node that is out of it comes back."""
        for name, machine in self._cluster.machines.items():
            token = machine.noded and machine.noded.identity.token
            if token and self._random.random() < 0.7:
                return AddNode(node_name=NodeName(name), primary_ip=ip_of(name), token=str(token))
        node, chance = NodeName(self._random.choice(self._cluster.names)), self._random
        make: list[Callable[[], Order]] = [
            lambda: ModifyNode(node_name=node, master_candidate=True),
            lambda: ModifyNode(node_name=node, master_candidate=True),
            lambda: ModifyNode(
                node_name=node, master_candidate=False, auto_promote=chance.random() < 0.5
            ),
            lambda: ModifyNode(node_name=node, drained=chance.random() < 0.3),
            lambda: EvacuateNode(node_name=node),
            lambda: EvacuateNode(node_name=node, secondary_only=True),
            lambda: MigrateNode(node_name=node),
            VerifyDisks,
            lambda: RemoveNode(node_name=node),
        ]
        made = self._random.choice(make)()
        if isinstance(made, RemoveNode) and self._members() <= FEWEST_NODES:
            return ModifyNode(node_name=node, drained=False)
        return made

    def _members(self) -> int:
        return min(len(m.running.store.state.config.nodes) for m in self._cluster.masters())

    async def _about_a_job(self, master: Coordinator) -> None:
        """Cancel a job of the last few, or change its priority."""
        recent = list(self._invariants.taken)[-6:]
        if not recent:
            return
        number = self._random.choice(recent)
        cancels = self._random.random() < 0.5
        method = "CancelJob" if cancels else "ChangeJobPriority"
        arguments = () if cancels else (self._random.randint(-20, 19),)
        try:
            async with asyncio.timeout(PATIENCE_S):
                done, told = await master.luxi(method, number, *arguments)
        except (GntError, OSError, TimeoutError) as error:
            self._note(f"{method} of job {number} on {master.name} fails: {error}")
            return
        self._note(f"{method} of job {number} on {master.name}: {told}")
        if done and cancels:
            self._invariants.cancelled.add(number)
