"""Run an allocator program: a file in, what it prints out.

It runs as the coordinator does, without privileges, with a bare environment and no shell.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common.execute import CommandFailed, execute
from coordinator.operations.placement.allocators import AllocatorFailed

PATIENCE_S = 600.0  # Debian's hail takes minutes where there are a thousand nodes


async def run_program(path: Path, options: Sequence[str], message: str) -> str:
    """Run ``path`` with the name of a file that holds ``message`` as its last argument.

    Nobody else can read the file; it is gone afterwards. The program is killed when this is
    cancelled, or when its time is over.

    Raises:
        AllocatorFailed: it cannot be started, ended with a status other than 0, took more than
            ten minutes or printed more than 4 MiB; with what it said.
    """
    with tempfile.NamedTemporaryFile("w", prefix="gantry-allocator-", encoding="utf-8") as file:
        await asyncio.to_thread(_fill, file, message)
        try:
            done = await execute(str(path), *options, file.name, timeout_s=PATIENCE_S)
        except CommandFailed as error:
            raise AllocatorFailed(error.message, **error.detail) from error
    return done.stdout.decode(errors="replace")


def _fill(file: "tempfile._TemporaryFileWrapper[str]", message: str) -> None:
    file.write(message)
    file.flush()
