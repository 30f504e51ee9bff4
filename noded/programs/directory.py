"""Programs in directories of root's, run as root; there are none until root makes the directory."""

import asyncio
import logging
from pathlib import Path

from common.errors import NodeFailure
from common.names import NodeName
from common.noderpc.programs import RESTRICTED_S, OobCommand
from noded.programs.interface import ProgramRunner
from noded.system.execute import CommandFailed, execute
from noded.system.roots_scripts import check_program, check_roots_own
from noded.system.threads import in_thread

log = logging.getLogger(__name__)

SEARCH_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
SAID = 60_000  # characters of what a program wrote, from the end
REFUSED_S = 3.0  # before somebody who guesses names hears that a command is none


class ProgramDirectory(ProgramRunner):
    """Runs what root has put into one of two directories, and nothing else."""

    def __init__(self, out_of_band: Path, restricted: Path) -> None:
        """Look in ``out_of_band`` and ``restricted``, which need not be there."""
        self._out_of_band, self._restricted = out_of_band, restricted

    async def out_of_band(
        self, program: str, command: OobCommand, node: NodeName, timeout_s: float
    ) -> str:
        path = Path(program)
        await in_thread(self._check_place, path)
        said = await execute(str(path), command, node, timeout_s=timeout_s, environment=SEARCH_PATH)
        return said.stdout.decode(errors="replace")[-SAID:]

    async def problem(self, program: str) -> str:
        try:
            await in_thread(self._check_place, Path(program))
        except NodeFailure as error:
            return error.message
        return ""

    def _check_place(self, path: Path) -> None:
        if path.parent != self._out_of_band or path.name in ("", ".", ".."):
            raise NodeFailure(
                f"{path} is not in {self._out_of_band}, and programs that are elsewhere are not "
                "run as root; put it there, or a link to it.",
                path=str(path),
            )
        _check(path)

    async def restricted(self, command: str) -> str:
        path = self._restricted / command
        try:
            await in_thread(_check, path)
        except NodeFailure as error:
            # Whoever has got hold of a master's key is not to learn what there is.
            log.warning("the restricted command %s was not run: %s", command, error.message)
            await asyncio.sleep(REFUSED_S)
            raise NodeFailure(
                f"This node does not run “{command}”; its log says why.", command=command
            ) from None
        log.info("runs the restricted command %s", command)
        try:
            said = await execute(
                str(path), timeout_s=RESTRICTED_S, environment=SEARCH_PATH, streams_as_one=True
            )
        except CommandFailed as error:
            raise NodeFailure(error.message[-SAID:], command=command) from error
        return said.stdout.decode(errors="replace")[-SAID:]


def _check(path: Path) -> None:
    """Refuse what others than root could have put there or changed.

    Raises:
        NodeFailure: says what is wrong.
    """
    try:
        check_roots_own(path.parent)
        check_program(path, path.stat().st_mode)
        check_roots_own(path.resolve().parent)
    except OSError as error:
        raise NodeFailure(f"Cannot run {path}: {error.strerror}.", path=str(path)) from error
