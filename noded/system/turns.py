"""One at a time for each object, all at once for different ones."""

import asyncio
from weakref import WeakValueDictionary


class Turns:
    """A lock for each key, kept only as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: str) -> asyncio.Lock:
        """Return what has to be held while ``key`` is changed: ``async with turns.of(key):``."""
        return self._locks.setdefault(key, asyncio.Lock())
