"""What runs root's programs on a node; the real one and the fake keep the same promises."""

from typing import Protocol

from common.names import NodeName
from common.noderpc.programs import OobCommand


class ProgramRunner(Protocol):
    """See ``common.noderpc.programs``."""

    async def out_of_band(
        self, program: str, command: OobCommand, node: NodeName, timeout_s: float
    ) -> str:
        """Run a program about a machine; return what it wrote."""

    async def problem(self, program: str) -> str:
        """Say why a program about machines would not be run; nothing if it would."""

    async def restricted(self, command: str) -> str:
        """Run a command; return what it wrote."""
