"""Calls of a job to nodes, shown while they are under way: who is waited for, and with what."""

from collections.abc import Callable
from dataclasses import dataclass

from common.rpc.client import Transport
from common.rpc.declare import CallSpec
from coordinator.jobs.running import RunningJob


@dataclass(frozen=True, slots=True)
class ShownCalls:
    """Carries calls as ``line`` does, and has ``running`` know of them."""

    line: Transport
    running: RunningJob
    now: Callable[[], float]

    @property
    def peer(self) -> str:
        return self.line.peer

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        with self.running.calling(f"node {self.peer} to answer {call.name}", self.now()):
            return await self.line.send(call, body)
