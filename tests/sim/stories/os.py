"""Stories of operating systems that are installed on instances."""

from typing import Any

from msgspec.structs import replace

from common.names import InstanceName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.os_settings import OsListing
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.os.diagnose import DiagnoseOperatingSystems
from tests.sim.settings import WEB1, create, mirrored, web1_mirrored
from tests.support.cluster import SimulatedCluster
from tests.support.seeds import is_thorough
from tests.support.story import Setting, Story

DEBIAN = "debian+stable"
SECRETS = {"root_password": "open sesame"}


def installed_with(*, start: bool = False, **more: Any) -> Setting:
    """Begin with an instance that has an operating system, and a private parameter of it."""

    async def setting(cluster: SimulatedCluster) -> None:
        order = create(node="gamma", start=start)
        await cluster.run(replace(order, os_type=DEBIAN, osparams_private=SECRETS, **more))

    return setting


ANOTHER = ReinstallInstance(instance_name=WEB1, os_type="noop")

SETTINGS = ModifyCluster(
    osparams={"debian": {"mirror": "near"}},
    osparams_private_cluster={"debian": SECRETS},
    hidden_os=((OsListing.ADD, "noop"),),
)

STORIES = {
    "set parameters of an operating system": Story(SETTINGS, again=SETTINGS, has_secret=True),
    "look at operating systems": Story(DiagnoseOperatingSystems(output_fields=("name",))),
    "install": Story(
        replace(create(node="gamma", start=False), os_type=DEBIAN, osparams_private=SECRETS),
        has_secret=True,
    ),
    "install another": Story(
        ANOTHER, installed_with(), again=ANOTHER, uncertain=frozenset({"contents shared"})
    ),
}

RENAMING = RenameInstance(instance_name=WEB1, new_name=InstanceName("shop"))

_IN_DETAIL = {
    # Whoever uses the disks next lets go of them; renamed it is by then.
    "rename on its disks, too": Story(
        RENAMING,
        installed_with(),
        uncertain=frozenset({"contents shared", "attached gamma", "scripts gamma"}),
    ),
    "install on mirrored disks": Story(replace(mirrored(), os_type=DEBIAN)),
    "install on mirrored disks anew": Story(
        ANOTHER,
        web1_mirrored(start=False),
        again=ANOTHER,
        uncertain=frozenset({"contents beta", "contents gamma", "attached beta"}),
    ),
}

if is_thorough():
    STORIES |= _IN_DETAIL
