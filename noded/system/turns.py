"""One at a time for each object, all at once for different ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from noded.system.patience import check_patience


class Turns:
    """A lock for each key, kept only as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Hold what has to be held while ``key`` is changed: ``async with turns.of(key):``.

        Raises:
            Expired: whoever ordered the change gave up while it waited.
        """
        async with self._locks.setdefault(key, asyncio.Lock()):
            check_patience()
            yield
