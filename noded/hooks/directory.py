"""Hooks in directories of root's, run as root: ``/etc/gantry/hooks/instance-start-pre.d``."""

import asyncio
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from common.errors import NodeFailure
from common.noderpc.hooks import DIRECTORY_S, SCRIPT_S, Ending, HookReport
from noded.hooks.interface import HookRunner
from noded.system.execute import CommandFailed, execute
from noded.system.roots_scripts import check_program, check_roots_own
from noded.system.threads import in_thread

SEARCH_PATH = "/sbin:/bin:/usr/sbin:/usr/bin"  # as Ganeti's scripts expect it
SAID = 4000  # characters of what a script wrote, from the end

_NAME = re.compile(r"[a-zA-Z0-9_-]+")  # others are left alone: editors' copies, packages' old files


class HookScripts(HookRunner):
    """Runs what root has put there, and nothing that others could have changed."""

    def __init__(
        self, root: Path, state: Path, *, script_s: float = SCRIPT_S, all_s: float = DIRECTORY_S
    ) -> None:
        """Look below ``root``, which need not be there.

        Args:
            root: of the directories.
            state: this node's own, which scripts are told.
            script_s: how long one script may take.
            all_s: how long all of a directory may take.
        """
        self._root, self._state = root, state
        self._script_s, self._all_s = script_s, all_s

    async def present(self, directories: Collection[str]) -> tuple[str, ...]:
        def look() -> tuple[str, ...]:
            return tuple(name for name in directories if _scripts(self._root / name))

        return await in_thread(look)

    async def run(self, directory: str, environment: Mapping[str, str]) -> tuple[HookReport, ...]:
        place = self._root / directory
        told = {"PATH": SEARCH_PATH, "GANETI_DATA_DIR": str(self._state), **environment}
        loop = asyncio.get_running_loop()
        end = loop.time() + self._all_s
        reports = []
        for script in await in_thread(_scripts, place):
            left_s = min(self._script_s, end - loop.time())
            reports.append(await _run(script, told, left_s))
        return tuple(reports)


async def _run(script: Path, environment: Mapping[str, str], left_s: float) -> HookReport:
    try:
        if not await in_thread(_may_run, script):
            return HookReport(script=script.name, ending=Ending.SKIPPED)
        if left_s <= 0:
            return HookReport(
                script=script.name,
                ending=Ending.FAILED,
                said="The scripts before it took all the time that there is.",
            )
        said = await execute(
            str(script), timeout_s=left_s, environment=environment, streams_as_one=True
        )
    except CommandFailed as error:
        return HookReport(script=script.name, ending=Ending.FAILED, said=error.message[-SAID:])
    except NodeFailure as error:
        return HookReport(script=script.name, ending=Ending.FAILED, said=error.message)
    text = said.stdout.decode(errors="replace").strip()
    return HookReport(script=script.name, ending=Ending.DONE, said=text[-SAID:])


def _scripts(directory: Path) -> list[Path]:
    """Return what may be a script; none where there is no such directory."""
    try:
        found = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return []
    return sorted(path for path in found if not path.is_dir())


def _may_run(script: Path) -> bool:
    """Tell whether this is to be run at all.

    Raises:
        NodeFailure: it cannot be looked at, or others could have changed it.
    """
    try:
        mode = script.stat().st_mode
        if not mode & 0o111:
            return False
        check_roots_own(script.parent.parent)
        check_roots_own(script.parent)
        check_program(script, mode)
    except OSError as error:
        raise NodeFailure(f"Cannot run {script}: {error.strerror}.", path=str(script)) from error
    return True
