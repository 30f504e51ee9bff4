"""Something that happens again and again, and whoever waits until it does the next time."""

import asyncio


class Bell:
    """Rings for all who wait for it just then."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[Bell], None] = {}  # in their order

    def ring(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(self)


async def first_of(*bells: Bell) -> Bell:
    """Return the bell that rings first; takes no task for each of them."""
    waiter: asyncio.Future[Bell] = asyncio.get_running_loop().create_future()
    for bell in bells:
        bell._waiting[waiter] = None  # noqa: SLF001 -- of the same idea
    try:
        return await waiter
    finally:
        for bell in bells:
            del bell._waiting[waiter]  # noqa: SLF001
