"""Hooks that only take note of being run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from common.noderpc.hooks import Ending, HookReport
from noded.hooks.interface import HookRunner


@dataclass(slots=True)
class FakeHooks(HookRunner):
    """One machine's.

    Attributes:
        scripts: by directory the names of scripts, and how each is going to end.
        runs: the directory, the script and its environment of each that was run, in order.
    """

    scripts: dict[str, dict[str, Ending]] = field(default_factory=dict)
    runs: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    async def present(self, directories: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in directories if self.scripts.get(name))

    async def run(self, directory: str, environment: Mapping[str, str]) -> tuple[HookReport, ...]:
        reports = []
        for script, ending in sorted(self.scripts.get(directory, {}).items()):
            if ending is not Ending.SKIPPED:
                self.runs.append((directory, script, dict(environment)))
            said = "It ended with status 1." if ending is Ending.FAILED else ""
            reports.append(HookReport(script=script, ending=ending, said=said))
        return tuple(reports)
