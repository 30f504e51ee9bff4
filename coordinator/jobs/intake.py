"""Take jobs in: number them, have them stored, and only then have them queued."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from common.errors import GntError, InvalidRequest, Unreachable
from common.luxi.failures import QueueDrained
from common.model.job import Job
from common.names import JobId
from common.tasks import Background
from coordinator.jobs.known import KnownJobs
from coordinator.jobs.running import RunningJob
from coordinator.jobs.storing import stored
from coordinator.jobs.submission import Batch, Submitted, dependencies_of, read_job
from coordinator.operations.base import Batches
from coordinator.operations.follow_up import FollowUps
from coordinator.state.archive import Archive
from coordinator.state.store import Store


class Intake:
    """Takes jobs from clients, and from operations that have others do their work.

    Args:
        jobs: those there are.
        store: the state.
        archive: where jobs are on which others may still be said to depend.
        now: seconds since 1970.
        background: owns what is still being stored when nobody waits for it any more.
        admit: queues jobs that are stored.
    """

    def __init__(
        self,
        jobs: KnownJobs,
        store: Store,
        archive: Archive,
        now: Callable[[], float],
        background: Background,
        admit: Callable[[Sequence[RunningJob]], None],
    ) -> None:
        self._jobs, self._store, self._archive, self._now = jobs, store, archive, now
        self._background, self._admit = background, admit
        self._next: int  # number to be given; unknown before ``resume``, and nobody may ask for one

    def resume(self) -> None:
        """Go on after the newest job of the state, and with what a word has set aside."""
        self._next = 1 + self._store.state.newest_job

    @property
    def newest(self) -> JobId:
        """The newest job there is, or is about to be."""
        return JobId(self._next - 1)

    async def submit(self, batches: Batches, *, to_drained: bool = False) -> list[JobId | GntError]:
        """Store jobs durably and queue them; see ``JobQueue.submit``."""
        self._store.check_writable()
        if self._store.state.config.cluster.queue_drained and not to_drained:
            raise QueueDrained(
                "The job queue is drained and takes no jobs; “gnt-cluster queue undrain” opens it."
            )
        archived = await self._archived(batches)
        answers, jobs = self._read_each([Batch(batch) for batch in batches], archived)
        nonsense = next((each for each in answers if isinstance(each, InvalidRequest)), None)
        if nonsense is not None:
            raise nonsense
        if jobs:
            self._jobs.arriving |= {job.id: job for job in jobs}
            await stored(self._take_in(jobs), self._background, lambda: self._unknown(jobs))
        return answers

    def read(self, jobs: FollowUps) -> tuple[list[JobId | GntError], list[RunningJob]]:
        """Read and number jobs that an operation leaves to others.

        Returns:
            An answer for each, and those that make sense.
        """
        batches = (Batch([op.input for op in job], [op.choice for op in job]) for job in jobs)
        return self._read_each(batches, {})

    def _read_each(
        self, batches: Iterable[Batch], archived: Mapping[JobId, Job]
    ) -> tuple[list[JobId | GntError], list[RunningJob]]:
        answers: list[JobId | GntError] = []
        jobs: list[RunningJob] = []
        for batch in batches:
            try:
                before = [job.id for job in jobs]
                jobs.append(RunningJob(*self._read(batch, before, archived)))
                answers.append(jobs[-1].id)
            except GntError as error:
                answers.append(error)
        return answers, jobs

    def _read(self, batch: Batch, before: list[JobId], archived: Mapping[JobId, Job]) -> Submitted:
        submitted = read_job(
            batch,
            JobId(self._next),
            now=self._now(),
            before=before,
            find=lambda number: self._jobs.find(number) or archived.get(number),
        )
        self._next += 1
        return submitted

    async def _archived(self, batches: Batches) -> dict[JobId, Job]:
        """Return those archived jobs that some of these depend on."""
        named = {number for batch in batches for number in dependencies_of(batch)}
        return await self._archive.find_several(n for n in named if not self._jobs.find(n))

    async def _take_in(self, jobs: Sequence[RunningJob]) -> None:
        try:
            await self._store.commit([job.put() for job in jobs])
            self._admit(jobs)
        finally:
            for job in jobs:
                del self._jobs.arriving[job.id]

    def _unknown(self, jobs: Sequence[RunningJob]) -> Unreachable:
        """Say what is known of jobs that no majority has confirmed: whether they run is open."""
        numbers = [job.id for job in jobs]
        first = numbers[0]
        which = f"job {first}" if len(jobs) == 1 else f"the jobs {first} to {numbers[-1]}"
        why = " ".join(f"{name}: {error}" for name, error in self._store.troubles.items())
        said = (
            f"It is not known whether {which} will run: no majority of the master candidates has "
            "confirmed to have stored it. If this node stays the master, it will be stored and run "
            "as soon as they answer; if another one becomes master before, it may run there or be "
            f"lost. Once a majority answers, “gnt-job info {first}” on the master tells: a job "
            f"that it does not know, or knows as another one, was lost and never ran. {why}"
        )
        return Unreachable(said.rstrip(), jobs=numbers)
