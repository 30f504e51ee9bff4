"""A node that answers anything."""

import asyncio
import json
from functools import cache
from random import Random
from typing import Any

from common.rpc.server import Reply
from tests.support.faults import Which
from tests.support.network import Fault, Trip

BAD_NUMBERS = [-1, 0, 1, 2**40 + 1, 2**53 + 1, 2**63, 2**64, 10**400, 1e308, 0.5, True, "7", None]
BAD_TEXTS = ["", "alpha", "\x1b[2J\x9b", "\u202e", "x" * 300, "y" * 20_000, 7, None, ["a"]]
CODES = [
    "conflict.deposed", "cancelled", "stuck", "unreachable", "bug", "", "of the future",
    "conflict.expired", "not-found", "invalid-request",
]  # fmt: skip
FOREVER_S = 1000.0


@cache
def _endless() -> bytes:
    """Return an answer of 60 MiB; writing it takes longer than all else that is done with it."""
    return b'{"result":"' + b"z" * (60 << 20) + b'"}'


class Lying(Fault):
    """Has calls answered with the truth bent, with errors, nonsense, too much, or never."""

    def __init__(self, random: Random, which: Which) -> None:
        self.lies = 0
        self._random, self._which = random, which

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if not self._which(trip):
            return reply
        self.lies += 1
        match self._random.randrange(8):
            case 0:
                await asyncio.sleep(FOREVER_S)
                return reply
            case 1:
                return Reply(200, self._random.choice([b"", b"[]", b"\xff", b"[" * 100_000]))
            case 2:
                return Reply(200, _endless())
            case 3 | 4:
                error = {
                    "code": self._random.choice(CODES), "message": self._random.choice(BAD_TEXTS),
                    "detail": {"message": 1, "epoch": 2**53, "self": ["z" * 100_000]},
                }  # fmt: skip
                return Reply(409, json.dumps({"error": error}).encode())
            case _:
                return Reply(200, json.dumps(self._bend(json.loads(reply.body))).encode())

    def _bend(self, value: Any) -> Any:
        """Replace about every third leaf."""
        match value:
            case dict():
                return {key: self._bend(inner) for key, inner in value.items()}
            case list():
                return [self._bend(inner) for inner in value] * self._random.choice([0, 1, 1, 3])
            case _ if self._random.random() < 0.7:
                return value
            case str():
                return self._random.choice(BAD_TEXTS)
            case _:
                return self._random.choice(BAD_NUMBERS)
