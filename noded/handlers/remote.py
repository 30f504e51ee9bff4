"""Calls about what root of this node lets the master do here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from common.noderpc.files import FileReport
from common.noderpc.remote import Ended, KeptFile, Remote
from common.paths import Paths
from noded.remote.files import AllowedFiles
from noded.remote.rules import read_rules
from noded.remote.shell import check_shell
from noded.system.threads import in_thread

RunLine = Callable[[str], Awaitable[Ended]]

log = logging.getLogger(__name__)


class RemoteHandlers(Remote):
    def __init__(self, paths: Paths, run_line: RunLine) -> None:
        self._rules = paths.remote_rules
        self._files = AllowedFiles(paths)
        self._run_line = run_line
        self._writing = asyncio.Lock()

    async def put(self, *, file: KeptFile) -> None:
        async with self._writing:
            await in_thread(self._files.put, file)
        log.info("has a new %s from the master", file.path)

    async def get(self, *, path: str) -> KeptFile | None:
        return await in_thread(self._files.get, path)

    async def digests(self, *, paths: tuple[str, ...]) -> tuple[FileReport, ...]:
        def look() -> tuple[FileReport, ...]:
            return tuple(FileReport(digest=self._files.digest(path)) for path in paths)

        return await in_thread(look)

    async def run(self, *, line: str) -> Ended:
        check_shell(await in_thread(read_rules, self._rules))
        log.warning("runs a command of the master's: %s", line)
        ended = await self._run_line(line)
        log.warning("the command of the master's ended with status %s", ended.status)
        return ended
