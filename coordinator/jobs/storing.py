"""Have a change stored, and do not wait for ever to be told that it is."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from common.errors import GntError, Unreachable
from common.tasks import Background

log = logging.getLogger(__name__)

PATIENCE_S = 20.0  # for a majority that has just been lost, without our knowing yet


async def stored(
    change: Coroutine[Any, Any, object],
    background: Background,
    unknown: Callable[[], Unreachable],
) -> None:
    """Return when a change is stored; it goes on in the background when nobody waits any more.

    Args:
        change: stores it.
        background: owns what goes on.
        unknown: what to raise while it is not known whether it was stored.
    """
    task = background.start(_outcome(change), name="store a change of the queue")
    await asyncio.wait({task}, timeout=PATIENCE_S)
    if not task.done():
        raise unknown()
    if error := task.result():
        raise error


async def _outcome(change: Coroutine[Any, Any, object]) -> GntError | None:
    try:
        await change
    except GntError as error:
        log.info("a change of the queue was not stored: %s", error)
        return error
    return None
