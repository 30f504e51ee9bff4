"""Programs that only answer, and take note of being asked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from common.errors import NodeFailure
from common.names import NodeName
from common.noderpc.programs import OobCommand
from noded.programs.interface import ProgramRunner


@dataclass(slots=True)
class FakePrograms(ProgramRunner):
    """One machine's.

    Attributes:
        answers: what a program writes, by command and node; None: it fails.
        problems: why a program would not be run, by its path.
        commands: what restricted commands write, by their names.
        asked: commands and nodes, in the order asked.
        take_power: takes the power of a machine that is switched off; None: nobody does.
    """

    answers: dict[tuple[OobCommand, str], str | None] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[OobCommand, str]] = field(default_factory=list)
    take_power: Callable[[str], Awaitable[None]] | None = None

    async def out_of_band(
        self, program: str, command: OobCommand, node: NodeName, timeout_s: float
    ) -> str:
        self.asked.append((command, node))
        said = self.answers.get((command, node), "")
        if said is None:
            raise NodeFailure(f"{program} {command} {node} failed with status 1 ({timeout_s} s).")
        if self.take_power and command is OobCommand.POWER_OFF:
            await self.take_power(node)
        return said

    async def problem(self, program: str) -> str:
        return self.problems.get(program, "")

    async def restricted(self, command: str) -> str:
        if command not in self.commands:
            raise NodeFailure(f"This node does not run “{command}”; its log says why.")
        return self.commands[command]
