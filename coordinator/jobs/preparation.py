"""Bring an operation to where it can begin: its choice made, its locks taken, all checked."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from common.errors import Cancelled, Conflict, GntError
from common.model.job import HooksDue, Status
from coordinator.hooks.phases import HookPhases
from coordinator.hooks.scene import Scene
from coordinator.jobs.context import JobContext
from coordinator.jobs.running import Doing, RunningJob, ended
from coordinator.locks.manager import LockManager, LocksBusy
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, StaleChoice
from coordinator.operations.locking import to_rows
from coordinator.state.store import Store
from coordinator.state.versions import to_values

CHOICES = 5  # times a choice may go stale before the job gives up

T = TypeVar("T")


class Places(Protocol):
    """What a job leaves while it can only wait."""

    def leave_place(self, running: RunningJob) -> None:
        """Let another job run while this one can only wait."""

    async def take_place(self, running: RunningJob) -> None:
        """Wait for a place to run."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """One operation of a job on its way to its plan."""

    running: RunningJob
    index: int
    operation: Operation[Any, Any]
    context: JobContext
    store: Store
    locks: LockManager
    places: Places
    now: Callable[[], float]

    async def plan(self, choice: Any) -> Any:
        """Choose, lock, check: until the choice still holds under the locks; return the plan.

        Locks may be held when it raises, too; the caller gives them back in any case.

        Args:
            choice: of whoever submitted the job, or of a predecessor; else None.

        Raises:
            GntError: what is in the way.
            Cancelled: the operator ends the job first.
        """
        running, operation = self.running, self.operation
        started = running.op(self.index).started or self.now()
        running.change_op(self.index, status=Status.WAITING, started=started)
        why = ""
        for _ in range(CHOICES):
            operation.check_object(self.store.state.config)
            if choice is None:
                choice = await self._choice()
            wanted = operation.locks(self.store.state.config, choice)
            await self._unless_cancelled(self._lock(wanted))
            self._is_doing("its checks")
            try:
                if operation.locks(self.store.state.config, choice) != wanted:
                    raise StaleChoice  # noqa: TRY301 -- what was waited for is not what is needed now
                operation.check_object(self.store.state.config)
                plan = await self._unless_cancelled(operation.prepare(self.context, choice))
            except StaleChoice as stale:
                self.locks.release(running.owner)
                why = f" {stale.__cause__}" if isinstance(stale.__cause__, GntError) else ""
                choice = None
                continue
            self.context.promise(*operation.promises(plan))
            due = await self._hooks(plan)
            running.change_op(
                self.index,
                status=Status.RUNNING,
                executed=self.now(),
                choice=None,
                plan=to_values(plan, operation.plan_type),
                version=operation.version,
                locks=to_rows(wanted),
                hooks=due,
            )
            return plan
        raise Conflict(
            f"Whatever was chosen for {operation.summary()} was taken by others meanwhile, "
            f"{CHOICES} times; try again, or name a node.{why}"
        )

    async def _hooks(self, plan: Any) -> HooksDue | None:
        """Run the hooks before it; return those after it."""
        if self.running.op(self.index).input.get("dry_run"):
            return None
        self._is_doing("hooks")
        phases = HookPhases(self.context, self.running.id)
        scene = Scene(self.operation, plan, self.context.config)
        return await self._unless_cancelled(phases.before(scene))

    async def _choice(self) -> Any:
        self._is_doing("its choice of nodes")
        choice = await self._unless_cancelled(self.operation.choose(self.context))
        values = to_values(choice, self.operation.choice_type)
        self.running.change_op(self.index, choice=values, version=self.operation.version)
        return choice

    async def _lock(self, wanted: Wanted) -> None:
        """Get locks; while others hold them, somebody else may have this job's place."""
        owner = self.running.owner
        try:
            await self.locks.acquire(owner, wanted, timeout=0, priority=self._priority)
        except LocksBusy:
            self._is_doing("its locks")
            self.places.leave_place(self.running)
            await self.locks.acquire(owner, wanted, timeout=None, priority=self._priority)
            await self.places.take_place(self.running)

    @property
    def _priority(self) -> int:
        return self.running.op(self.index).priority

    def _is_doing(self, what: str) -> None:
        self.running.doing = Doing(what, self.now())

    async def _unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that changes nothing, unless the operator ends the job first."""
        wish = asyncio.ensure_future(self.running.cancel_wanted.wait())
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, wish}, return_when=asyncio.FIRST_COMPLETED)
            if self.running.cancel_wanted.is_set():
                raise Cancelled(f"Job {self.running.id} was cancelled before it began.")
            return task.result()
        finally:
            await ended(task, wish)
