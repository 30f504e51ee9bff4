"""Programs that root of a node has put there for the cluster to run, as root.

Two kinds: those that switch the power of other machines, which are asked of the master, and
commands that operators may run on nodes whose ssh has died. Only what lies in a directory of root's
is run.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from common.names import NodeName, Sentence
from common.rpc.declare import NodeService, rpc

LONGEST_S = 600  # that a program may take
RESTRICTED_S = 60  # that a restricted command may take

ProgramPath = Annotated[
    str,
    Meta(pattern=r"^/[^\x00]{1,1023}$", description="a path from /, of at most 1024 characters"),
]
CommandName = Annotated[
    str,
    Meta(
        pattern=r"^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,127}$",
        description="1 to 128 letters, digits and “_-”, and does not begin with “-”",
    ),
]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_S)]
Text = Annotated[str, Meta(max_length=64 << 10)]


class OobCommand(StrEnum):
    """What a program is asked about a machine; names are Ganeti's."""

    HEALTH = "health"
    POWER_CYCLE = "power-cycle"
    POWER_OFF = "power-off"
    POWER_ON = "power-on"
    POWER_STATUS = "power-status"


class Programs(NodeService, prefix="programs"):
    """The programs of one node."""

    @rpc(timeout=LONGEST_S + 15, safe_to_repeat=False)
    @abstractmethod
    async def out_of_band(
        self, *, program: ProgramPath, command: OobCommand, node: NodeName, timeout_s: Limit
    ) -> Text:
        """Run a program with a command and the name of a node; return what it wrote.

        Raises:
            NodeFailure: it is not where such programs are, or is not root's alone; or it failed,
                with the end of what it said.
        """

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True, one_for_each="programs")
    @abstractmethod
    async def problems(self, *, programs: tuple[ProgramPath, ...]) -> tuple[Sentence, ...]:
        """Say of each program why ``out_of_band`` would not run it; nothing if it would."""

    @rpc(timeout=RESTRICTED_S + 15, safe_to_repeat=False)
    @abstractmethod
    async def restricted(self, *, command: CommandName) -> Text:
        """Run a command without arguments; return what it wrote.

        Raises:
            NodeFailure: there is none of this name, or it is not root's alone; or it failed.
        """
