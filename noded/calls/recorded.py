"""Each order is carried out once: a call that comes again gets the answer of the first.

A caller that lost an answer sends the same call once more, with the same id. Without this the
two could run side by side.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from common.errors import InvalidRequest
from common.names import CallId, NodeName
from common.rpc.server import Reply
from common.tasks import Background, unharmed
from noded.system.patience import check_patience

MOST_ANSWERS = 1000
MOST_BYTES = 2 << 20  # of answers; noded's memory is locked


@dataclass(slots=True)
class _Call:
    question: int  # hash of what was asked
    outcome: asyncio.Task[Reply] | Reply  # of a call that has ended the answer alone is kept

    @property
    def is_going_on(self) -> bool:
        return isinstance(self.outcome, asyncio.Task) and not self.outcome.done()

    @property
    def size(self) -> int:
        """Bytes of the answer, once it is known."""
        return len(self.outcome.body) if isinstance(self.outcome, Reply) else 0


class RecordedAnswers:
    """Remembers calls by caller and id, the latest thousand or 2 MiB of them."""

    def __init__(self, background: Background) -> None:
        """Run calls as tasks of ``background``: they go on when their caller hangs up."""
        self._background = background
        self._calls: dict[tuple[NodeName, CallId], _Call] = {}  # oldest first
        self._bytes = 0

    async def once(
        self,
        caller: NodeName,
        call: CallId,
        question: tuple[str, bytes],
        run: Callable[[], Coroutine[Any, Any, Reply]],
    ) -> Reply:
        """Return the answer of ``run()``, which is carried out once for each caller and id.

        Args:
            caller: who asks.
            call: the id that the caller gave it.
            question: name and body; an id must not be used for two.
            run: must not raise.

        Raises:
            Expired: it comes for the first time, and too late; that is not recorded.
            InvalidRequest: the id was used for another question.
        """
        asked = hash(question)
        known = self._calls.get((caller, call))
        if known is None:
            check_patience()
            task = self._background.start(run(), name=f"{question[0]} for {caller}")
            known = self._calls[caller, call] = _Call(asked, task)
            task.add_done_callback(partial(self._ended, known))
        if known.question != asked:
            raise InvalidRequest(
                f"The call id {call} was used for another call; each call needs its own.", call=call
            )
        if isinstance(known.outcome, Reply):
            return known.outcome
        return await unharmed(known.outcome)

    def _ended(self, call: _Call, done: asyncio.Task[Reply]) -> None:
        if not done.cancelled() and done.exception() is None:
            call.outcome = reply = done.result()
            self._bytes += len(reply.body)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._calls) > MOST_ANSWERS or self._bytes > MOST_BYTES:
            oldest = next((key for key, call in self._calls.items() if not call.is_going_on), None)
            if oldest is None:
                return
            self._bytes -= self._calls.pop(oldest).size
