"""The journal of one operation, kept in its job's row."""

from collections.abc import Callable

from common.errors import Cancelled, GntError
from common.model.job import Entry, OperationRecord, Status
from coordinator.jobs.bounds import failure_of
from coordinator.jobs.running import Doing, RunningJob
from coordinator.operations.step import Edit
from coordinator.state.rows import Update
from coordinator.state.state import State
from coordinator.state.store import Store


class JobJournal:
    """Implements ``coordinator.jobs.recipe.Journal`` on the state store."""

    def __init__(
        self, running: RunningJob, index: int, store: Store, now: Callable[[], float]
    ) -> None:
        self._running, self._index, self._store, self._now = running, index, store, now
        self._known = {(entry.event, entry.step) for entry in self._record.journal}

    @property
    def _record(self) -> OperationRecord:
        return self._running.op(self._index)

    @property
    def failure(self) -> GntError | None:
        told = self._record.failure
        return GntError.from_code(told.code, told.message, told.detail) if told else None

    def has(self, event: str, step: str) -> bool:
        return (event, step) in self._known

    def note(self, event: str, step: str) -> None:
        self._tell(event, step)
        self._known.add((event, step))
        journal = (*self._record.journal, Entry(event=event, step=step))
        if event == "started":
            self._running.doing = Doing(f"“{step}”", self._now())
        self._running.change_op(self._index, journal=journal)

    async def write(self, event: str, step: str, edit: Edit | None = None) -> None:
        if edit is None:
            self.note(event, step)
            await self._store.commit([self._running.put()])
            return

        # The entry may not be seen before the edit is known to be possible: an edit that
        # raises leaves the journal as it was. It is called again if a node had to be copied
        # to first.
        def both(state: State) -> list[Update]:
            edits = list(edit(state))
            if not self.has(event, step):
                self.note(event, step)
            return [*edits, self._running.put()]

        await self._store.commit(both)

    async def fail(self, failure: GntError) -> None:
        if self._record.journal:
            stays = "What was done before the point of no return stays."
            told = stays if self._running.past_return else "Undoing what was done."
            self._log(f"{failure.message} {told}")
        status = Status.CANCELING if isinstance(failure, Cancelled) else self._record.status
        self._running.change_op(self._index, status=status, failure=failure_of(failure))
        await self._store.commit([self._running.put()])

    def check_not_cancelled(self) -> None:
        if self._running.cancel_wanted.is_set() and not self._running.past_return:
            raise Cancelled(f"Job {self._running.id} was cancelled; what it had done is undone.")

    def tell(self, message: str) -> None:
        self._log(message)

    def _tell(self, event: str, step: str) -> None:
        """Show the operator each step once, as it begins, and each that is taken back."""
        if event == "undone":
            self._log(f"* undone: {step}")
        elif event == "started" or (event == "finished" and not self.has("started", step)):
            self._log(f"* {step}")

    def _log(self, message: str) -> None:
        self._running.log(self._index, self._now(), message)
