"""Stories of operating systems that are installed on instances."""

from coordinator.operations.os.diagnose import DiagnoseOperatingSystems
from tests.support.story import Story

STORIES = {
    "look at operating systems": Story(DiagnoseOperatingSystems(output_fields=("name",))),
}
