"""Guests that stand still and could not be told to go on: they are told until they do."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from common.errors import NodeFailure
from common.names import InstanceId
from common.tasks import Background
from noded.hypervisor.kvm.home import Home
from noded.system.patience import without_bounds

TELL_EVERY_S = 2.0

log = logging.getLogger(__name__)


class GoingOn:
    """Tells those of one node."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._telling: dict[InstanceId, asyncio.Task[None]] = {}

    def at_last(self, home: Home, go_on: Callable[[], Awaitable[None]]) -> None:
        """Have a guest go on however long that takes, as long as it lives and stands still."""
        telling = self._telling.get(home.instance)
        if telling is None or telling.done():
            with without_bounds():
                work = self._keep_telling(home, go_on)
                name = f"have {home.instance} go on"
                self._telling[home.instance] = self._background.start(work, name=name)

    def leave(self, instance: InstanceId) -> None:
        """Leave a guest alone that is to stand still anew, or to move."""
        if telling := self._telling.pop(instance, None):
            telling.cancel()

    async def _keep_telling(self, home: Home, go_on: Callable[[], Awaitable[None]]) -> None:
        while home.stands_still and home.runs:
            try:
                await go_on()
            except NodeFailure as error:
                log.warning("a guest still stands still: %s", error)
                await asyncio.sleep(TELL_EVERY_S)
