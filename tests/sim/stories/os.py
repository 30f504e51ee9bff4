"""Stories of operating systems that are installed on instances."""

from msgspec.structs import replace

from coordinator.operations.os.diagnose import DiagnoseOperatingSystems
from tests.sim.settings import create, mirrored
from tests.support.seeds import is_thorough
from tests.support.story import Story

DEBIAN = "debian+stable"
SECRETS = {"root_password": "open sesame"}

STORIES = {
    "look at operating systems": Story(DiagnoseOperatingSystems(output_fields=("name",))),
    "install": Story(
        replace(create(node="gamma", start=False), os_type=DEBIAN, osparams_private=SECRETS),
        has_secret=True,
    ),
}

_IN_DETAIL = {
    "install on mirrored disks": Story(replace(mirrored(), os_type=DEBIAN)),
}

if is_thorough():
    STORIES |= _IN_DETAIL
