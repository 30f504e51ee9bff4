"""What a noded process has of its machine, which it leaves as it is when it is killed."""

import asyncio
from collections.abc import Generator
from typing import Any


class Life:
    """Of one noded process: once it has ended, nothing of it reaches the machine any more."""

    def __init__(self) -> None:
        self.ended = False

    def of(self, driver: Any) -> Any:
        """Return ``driver`` for this process alone."""
        return _Held(driver, self)


class _Held:
    def __init__(self, driver: Any, life: Life) -> None:
        self._driver, self._life = driver, life

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._driver, name)
        if not asyncio.iscoroutinefunction(value):
            return value

        async def call(*arguments: Any, **named: Any) -> Any:
            if self._life.ended:
                raise asyncio.CancelledError
            return await _Step(value(*arguments, **named), self._life)

        return call

    async def close(self) -> None:
        """Leave the machine as it is."""


class _Killed(BaseException):
    """Ends a driver's work without its noticing why: a killed process tidies nothing up."""


class _Step:
    """Awaits a driver's work; a cancellation after the end of the process does not reach it."""

    def __init__(self, work: Any, life: Life) -> None:
        self._work, self._life = work, life

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        try:
            waits = steps.send(None)
            while True:
                try:
                    sent = yield waits
                except asyncio.CancelledError as error:
                    if self._life.ended:
                        _kill(steps)
                        raise
                    waits = steps.throw(error)
                else:
                    waits = steps.send(sent)
        except StopIteration as end:
            return end.value


def _kill(steps: Any) -> None:
    try:
        steps.throw(_Killed())
    except _Killed:
        return
