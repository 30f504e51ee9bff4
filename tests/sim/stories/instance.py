"""Stories of one instance, where it is."""

from msgspec.structs import replace

from common.model.instance import StateSource
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.console import FindConsole
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.query_data import QueryInstanceData
from coordinator.operations.instance.reboot import RebootInstance, RebootType
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import (
    WEB1,
    added,
    changed,
    create,
    hooked,
    removed,
    web1_on,
    web1_turned_off,
    web1_with_data_that_is_down,
)
from tests.support.story import Story

START_HOOKS = ("global-pre.d", "instance-start-pre.d", "instance-start-post.d", "global-post.d")

STORIES = {
    "tell all about it": Story(QueryInstanceData(), web1_on("gamma", start=False)),
    "create many": Story(
        CreateInstances(
            instances=({"instance_name": "web1", "disk_template": "diskless", "start": False},)
        )
    ),
    "create on a node, not started": Story(create(node="gamma", start=False)),
    "create several disks on volumes": Story(
        replace(
            create(node="gamma", template=DiskTemplate.PLAIN),
            disks=(DiskRequest(size="64M"), DiskRequest(size="32M")),
        )
    ),
    "start on volumes": Story(
        StartInstance(instance_name=WEB1),
        web1_on("gamma", template=DiskTemplate.PLAIN, start=False),
    ),
    "shut down on volumes": Story(
        ShutDownInstance(instance_name=WEB1), web1_on("gamma", template=DiskTemplate.PLAIN)
    ),
    "start": Story(StartInstance(instance_name=WEB1), web1_on("gamma", start=False)),
    "start paused": Story(
        StartInstance(instance_name=WEB1, startup_paused=True), web1_on("gamma", start=False)
    ),
    "start between hooks": Story(StartInstance(instance_name=WEB1), hooked(START_HOOKS)),
    "start what runs": Story(StartInstance(instance_name=WEB1), web1_on("gamma")),
    "shut down": Story(ShutDownInstance(instance_name=WEB1), web1_on("gamma")),
    "note that it was turned off": Story(
        ShutDownInstance(instance_name=WEB1, admin_state_source=StateSource.USER), web1_turned_off,
        again=ShutDownInstance(instance_name=WEB1),
    ),
    "kill": Story(ShutDownInstance(instance_name=WEB1, force=True), web1_on("gamma")),
    "reboot hard": Story(RebootInstance(instance_name=WEB1), web1_on("gamma")),
    "reboot soft": Story(
        RebootInstance(instance_name=WEB1, reboot_type=RebootType.SOFT), web1_on("gamma")
    ),
    "reboot what is down": Story(
        RebootInstance(instance_name=WEB1, reboot_type=RebootType.FULL),
        web1_on("gamma", start=False),
    ),
    "remove what is down": Story(
        RemoveInstance(instance_name=WEB1), web1_on("gamma", start=False),
        again=RemoveInstance(instance_name=WEB1),
    ),
    "modify": Story(
        ModifyInstance(
            instance_name=WEB1, beparams={"memory": "256M"}, hvparams={"acpi": False},
            osparams={"release": "trixie"},
            nics=(
                changed(0, {"ip": "192.0.2.7", "link": "br1"}),
                added(-1, {"name": "inner"}),
            ),
        ),
        web1_on("gamma", start=False),
    ),
    "exchange nics at once": Story(
        ModifyInstance(instance_name=WEB1, nics=(removed(0), added(-1)), hotplug=True),
        web1_on("gamma"),
    ),
    "use less memory": Story(
        ModifyInstance(instance_name=WEB1, runtime_mem=MiB(64), beparams={"minmem": 64}),
        web1_on("gamma"),
    ),
    "keep the disks in another way": Story(
        ModifyInstance(instance_name=WEB1, disk_template=DiskTemplate.SHAREDFILE),
        web1_with_data_that_is_down,
        uncertain=frozenset({"disks gamma", "contents gamma", "sizes gamma"}),
    ),
    "take the nics away": Story(
        ModifyInstance(instance_name=WEB1, nics=(removed(0),)), web1_on("gamma")
    ),
    "mark an instance offline": Story(
        ModifyInstance(instance_name=WEB1, offline=True), web1_on("gamma", start=False)
    ),
    "rename": Story(
        RenameInstance(instance_name=WEB1, new_name=InstanceName("shop")),
        web1_on("gamma", start=False),
    ),
    "console": Story(FindConsole(instance_name=WEB1), web1_on("gamma")),
}  # fmt: skip
