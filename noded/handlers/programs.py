"""Calls that run root's programs on this node."""

from common.names import NodeName, check_name
from common.noderpc.programs import OobCommand, Programs
from noded.programs.interface import ProgramRunner


class ProgramHandlers(Programs):
    def __init__(self, runner: ProgramRunner) -> None:
        self._runner = runner

    async def out_of_band(
        self, *, program: str, command: OobCommand, node: NodeName, timeout_s: int
    ) -> str:
        check_name(node, "node")
        return await self._runner.out_of_band(program, command, node, timeout_s)

    async def problems(self, *, programs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([await self._runner.problem(each) for each in programs])

    async def restricted(self, *, command: str) -> str:
        return await self._runner.restricted(command)
