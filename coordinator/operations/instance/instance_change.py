"""What an operator says of an instance that is to change, and what the instance is then."""

from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.os_name import read_os_name
from common.model.parameters import edited
from common.model.template import DiskTemplate
from common.names import MiB
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import keep_for_instance, read_parameters
from coordinator.operations.addresses import networks_of
from coordinator.operations.base import Operation
from coordinator.operations.fields import (
    ConflictsCheck,
    FileDirectoryOption,
    ForceVariant,
    IgnorePolicy,
    InstanceArgument,
    PrivateOsParameters,
    RateOption,
    WaitForSync,
)
from coordinator.operations.instance.disk_changes import (
    DiskAction,
    DiskChange,
    all_in_directory,
    find_attached,
)
from coordinator.operations.instance.modification import Modification
from coordinator.operations.instance.nic_changes import NicChange, named_networks
from coordinator.operations.instance.older_changes import in_three_parts
from coordinator.operations.instance.which import LAST
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Shorthand, Syntax, option
from coordinator.operations.specs import read_backend
from coordinator.operations.steps.scripts import lost_parameters
from coordinator.state.config import Config
from coordinator.state.rows import Update
from coordinator.state.state import State


class InstanceChange(Operation[None, Modification], kw_only=True):
    """An order to change an instance, as it is given, and checked as far as no node is asked."""

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
    file_storage_dir: FileDirectoryOption = None
    rate_limit: RateOption = 0
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

    def changed(self, present: Instance) -> Instance:
        """Return the instance as it will be, but for its devices."""
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
        )

    def check_words(self, after: Instance) -> None:
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

    @property
    def disk_changes(self) -> tuple[DiskChange, ...]:
        """What becomes of disks, and where the files of those are that come."""
        return all_in_directory(self.disks, self.file_storage_dir)

    def check_converts_nothing(self) -> None:
        """Refuse what is said of other disks when they are kept as they are."""
        if self.remote_node:
            raise InvalidRequest("A second copy is made with -t and a template that has one.")
        if self.ext_params:
            raise InvalidRequest("What a provider is told of disks goes with -t ext.")
        if self.rate_limit:
            raise InvalidRequest("--rate-limit goes with -t: nothing else here copies disks.")
        all_in_directory(self.disks, self.file_storage_dir)

    def check_stopped(self, instance: Instance, node: Node, *, runs: bool) -> None:
        """Refuse what cannot be done while it runs."""
        name = instance.name
        if self.disk_template and runs:
            raise Conflict(f"Instance {name} runs on {node.name}; stop it first.")
        if self.offline and runs:
            raise Conflict(
                f"Instance {name} runs; stop it with “gnt-instance shutdown {name}” before it is "
                "marked offline."
            )

    def keep_private(self, state: State, instance: Instance) -> list[Update]:
        """Return what stores the parameters that nobody is shown."""
        if isinstance(self.osparams_private, str):
            raise lost_parameters()
        given = self.osparams_private
        return [*keep_for_instance(state, instance.uuid, instance.os, given)]
