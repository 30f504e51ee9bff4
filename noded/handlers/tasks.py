"""Calls about the long work of this node."""

from common.names import TaskId
from common.noderpc.tasks import Tasks, TaskStatus
from noded.tasks.registry import TaskRegistry


class TaskHandlers(Tasks):
    def __init__(self, registry: TaskRegistry) -> None:
        self._registry = registry

    async def watch(self, *, task: TaskId, seen: str, wait_s: float) -> TaskStatus:
        return await self._registry.watch(task, seen=seen, wait_s=wait_s)

    async def cancel(self, *, task: TaskId) -> None:
        await self._registry.cancel(task)
