"""Show what an allocator is asked, or what it answers; nothing is placed or moved."""

from enum import StrEnum
from typing import Annotated, Any

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.iallocator.requests import EvacuationMode
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.fields import AllocatorOption
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for, find_program
from coordinator.operations.placement.look import look_about
from coordinator.operations.placement.promises import PlannedInstance, naming
from coordinator.operations.placement.trial import answer_to
from coordinator.state.config import Config

MOST_INSTANCES = 1000
LARGEST = 4 << 20  # characters: what is told stays with the job

_NIC = ("mac", "ip", "bridge")


class Direction(StrEnum):
    IN = "in"  # what an allocator is told
    OUT = "out"  # what it answers


class TextPlan(Order):
    text: str


@operation("OP_TEST_ALLOCATOR")
class TryAllocator(Operation[None, TextPlan], kw_only=True):
    """Print the message that an allocator would get, or its answer; nothing is done."""

    name: Annotated[str, argument("instance to place or to move")]
    direction: Annotated[
        Direction, option("--dir", help="the message (in), or the answer (out)")
    ] = Direction.IN
    mode: Annotated[RequestType, option("-m", "--mode", help="what is asked")] = (
        RequestType.RELOCATE
    )
    iallocator: AllocatorOption = None
    instances: Annotated[tuple[str, ...], hidden("to evacuate, or for other groups")] = ()
    evac_mode: Annotated[
        EvacuationMode, option("--evac-mode", help="which nodes an instance leaves")
    ] = EvacuationMode.ALL
    target_groups: Annotated[
        tuple[str, ...], option("--target-groups", help="to one of these", syntax=Syntax.LIST)
    ] = ()
    memory: Annotated[MiB | None, option("--memory", help="of a new instance")] = None
    vcpus: Annotated[int | None, option("-p", "--vcpus", help="of a new instance")] = None
    spindle_use: Annotated[int, option("--spindle-use", help="of a new instance")] = 1
    disk_template: Annotated[
        DiskTemplate | None, option("-t", "--disk-template", help="of a new instance")
    ] = None
    disks: Annotated[
        tuple[DiskRequest, ...],
        option("--disks", help="SIZE,SIZE,… of a new instance", syntax=Syntax.LIST),
    ] = ()
    nics: Annotated[
        tuple[NicRequest, ...],
        option("--nics", help="MAC/IP/BRIDGE,… of a new instance", syntax=Syntax.LIST),
    ] = ()
    os: Annotated[str | None, option("-o", "--os-type", help="of a new instance")] = None
    tags: Annotated[
        tuple[str, ...], option("--tags", help="of a new instance", syntax=Syntax.LIST)
    ] = ()
    hypervisor: Annotated[str | None, hidden("of a new instance")] = None
    count: Annotated[int, option("--count", help="how many new ones, for multi-allocate")] = 1

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        told = dict(given)
        for field, read in (("disks", _disk), ("nics", _nic)):
            if isinstance(every := given.get(field), list):
                told[field] = [read(each) for each in every]
        return told

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> TextPlan:
        text = await self._message(cluster)
        if self.direction is Direction.OUT:
            named = allocators_for(cluster.config.cluster, self.mode, self.iallocator)[0]
            text = await answer_to(cluster, find_program(named, cluster.placing.search_path), text)
        if len(text) > LARGEST:
            raise Conflict(
                f"It has {len(text):,} characters, more than the {LARGEST:,} that a job keeps."
            )
        return TextPlan(text=text)

    def result(self, plan: TextPlan) -> str:
        return plan.text

    def dry_result(self, cluster: Cluster, plan: TextPlan, titles: list[str]) -> str:  # noqa: ARG002
        return plan.text  # nothing is done in any case

    async def _message(self, cluster: Cluster) -> str:
        from coordinator.operations.placement import message

        if self.mode in (RequestType.ALLOCATE, RequestType.MULTI_ALLOCATE):
            planned = self._planned(cluster)
            cluster.promise(*map(naming, planned))
            look = await look_about(cluster, [disk for one in planned for disk in one.disks])
            asked = [message.ask_to_place(look, one) for one in planned]
            is_one = self.mode is RequestType.ALLOCATE
            return message.message_of(look, asked[0] if is_one else message.ask_for_places(asked))
        config = cluster.config
        if self.mode is RequestType.RELOCATE:
            instance = config.instance(self.name)
            disks = config.disks_of(instance)
            request = message.ask_for_move(instance, disks, _leaves(config, instance))
            return message.message_of(await look_about(cluster, disks), request)
        chosen = [config.instance(name) for name in self.instances or (self.name,)]
        names = list(dict.fromkeys(instance.name for instance in chosen))
        disks = tuple(disk for each in chosen for disk in config.disks_of(each))
        groups = [config.group(ref).uuid for ref in self.target_groups]
        look = await look_about(cluster, disks)
        if self.mode is RequestType.EVACUATE:
            return message.message_of(look, message.ask_to_evacuate(names, self.evac_mode))
        return message.message_of(look, message.ask_for_group(names, groups))

    def _planned(self, cluster: Cluster) -> list[PlannedInstance]:
        """Return the new instances that are asked about.

        Raises:
            GntError: as for a new instance.
        """
        names = [self.name]
        if self.mode is RequestType.MULTI_ALLOCATE:
            if not 1 <= self.count <= MOST_INSTANCES:
                raise InvalidRequest(f"--count is {self.count}; it is 1 to {MOST_INSTANCES}.")
            names = [f"{self.name}{number}" for number in range(self.count)]
        every = [self._wish(cluster.config, name) for name in names]
        for wish in every:
            wish.check_words(cluster.config)
        return [wish.placement_request(cluster) for wish in every]

    def _wish(self, config: Config, name: str) -> CreateInstance:
        beparams: dict[str, Any] = {"spindle_use": self.spindle_use}
        beparams |= {} if self.memory is None else {"memory": self.memory}
        beparams |= {} if self.vcpus is None else {"vcpus": self.vcpus}
        return CreateInstance(
            instance_name=InstanceName(name),
            disk_template=self.disk_template
            or DiskTemplate(config.cluster.enabled_disk_templates[0]),
            disks=self.disks,
            nics=self.nics,
            beparams=beparams,
            os_type=self.os,
            no_install=True,
            tags=self.tags,
            hypervisor=self.hypervisor,
        )


def _leaves(config: Config, instance: Instance) -> str:
    """Return the name of the node that a relocation is about.

    Raises:
        Conflict: its disks keep it where it is.
    """
    primary, *others = config.nodes_of(instance)
    if len(others) == 1:
        return config.nodes[others[0]].name
    if not instance.disk_template.traits.is_external:
        raise Conflict(
            f"Instance {instance.name} has its disks on its node, so no allocator is asked for "
            "another one.",
            instance=instance.name,
        )
    return config.nodes[primary].name


def _disk(told: Any) -> Any:
    return {"size": told} if isinstance(told, str) else told


def _nic(told: Any) -> Any:
    """Read MAC/IP/BRIDGE, of which each may be missing; null stands for that as well."""
    if isinstance(told, str):
        words = told.split("/")
        if len(words) > len(_NIC):
            raise InvalidRequest(f"“{told}” is no nic, as in 00:11:22:33:44:55/192.0.2.1/br0.")
        told = dict(zip(_NIC, words, strict=False))
    if isinstance(told, dict):
        return {key: value for key, value in told.items() if value not in (None, "")}
    return told
