"""Calls about the hooks of this node."""

from common.noderpc.hooks import HookReport, Hooks
from noded.hooks.interface import HookRunner


class HookHandlers(Hooks):
    def __init__(self, runner: HookRunner) -> None:
        self._runner = runner

    async def present(self, *, directories: tuple[str, ...]) -> tuple[str, ...]:
        return await self._runner.present(directories)

    async def run(self, *, directory: str, environment: dict[str, str]) -> tuple[HookReport, ...]:
        return await self._runner.run(directory, environment)
