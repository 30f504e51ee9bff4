"""All the cluster knows, at one moment."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from immutables import Map

from common.errors import Bug
from common.model.cluster import Cluster
from common.model.job import Job
from common.model.secret import Secret
from common.model.stamp import Stamp
from common.model.stored import Stored
from common.names import JobId
from coordinator.state.config import Config
from coordinator.state.kinds import SECRET, Home, kind_of
from coordinator.state.objects import Objects
from coordinator.state.rows import Put, Update


@dataclass(frozen=True, slots=True)
class State:
    """One immutable snapshot. Equal stamps mean equal states.

    ``besides`` has what is neither configuration nor jobs: secrets, and rows of kinds that only a
    newer version knows. ``newest_job`` is the highest job id ever given, as far as can be known
    after an operator's word set other states aside; a new job gets the next one. Archived jobs are
    no part of it: see ``coordinator.state.archive``.
    """

    config: Config = field(default_factory=Config)
    jobs: Map[JobId, Job] = field(default_factory=Map)
    besides: Objects = field(default_factory=Objects)
    stamp: Stamp = field(default_factory=Stamp)
    newest_job: JobId = field(default=JobId(0))

    @property
    def secrets(self) -> Map[str, Secret]:
        return self.besides.table(SECRET)

    def apply(self, updates: Iterable[Update]) -> "State":
        """Return the state after ``updates``, in their order, with the stamp left as it is.

        Raises:
            Conflict: a name would be given twice.
            Bug: the newest job would be deleted; then its id might be given again.
        """
        jobs, newest = self.jobs, self.newest_job
        configured: list[Update] = []
        besides: list[Update] = []
        for update in updates:
            item = update.item
            if isinstance(item, Job):
                newest = max(newest, item.id)
                if isinstance(update, Put):
                    jobs = jobs.set(item.id, item)
                elif item.id == newest:
                    raise Bug(f"Job {item.id} is the newest; it is kept, for its number's sake.")
                elif item.id in jobs:
                    jobs = jobs.delete(item.id)
                continue
            home = kind_of(item).home
            if home is Home.CONFIG:
                configured.append(update)
            elif home is Home.BESIDES:
                besides.append(update)
            if isinstance(item, Cluster):
                newest = max(newest, *(each.last_job for each in item.overrides), JobId(0))
        return State(
            self.config.apply(configured) if configured else self.config,
            jobs,
            self.besides.apply(besides) if besides else self.besides,
            self.stamp,
            newest,
        )

    def stamped(self, stamp: Stamp) -> "State":
        return State(self.config, self.jobs, self.besides, stamp, self.newest_job)

    def showing(self, jobs: Iterable[Job]) -> "State":
        """Return this state with some jobs as they are now."""
        return replace(self, jobs=self.jobs.update({job.id: job for job in jobs}))

    def items(self) -> Iterator[Stored]:
        """Yield everything that is stored, each object once."""
        yield from self.config
        yield from self.besides
        yield from self.jobs.values()


def state_of(items: Iterable[Stored], stamp: Stamp) -> State:
    """Build the state that consists of ``items``."""
    return State().apply(Put(item) for item in items).stamped(stamp)
