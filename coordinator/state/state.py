"""All the cluster knows, at one moment."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from immutables import Map

from common.errors import Bug
from common.model.cluster import Cluster
from common.model.job import ArchivedJob, Job
from common.model.secret import Secret
from common.model.stamp import Stamp
from common.names import JobId
from coordinator.state.config import Config
from coordinator.state.rows import Put, Stored, Update


@dataclass(frozen=True, slots=True)
class State:
    """One immutable snapshot. Equal stamps mean equal states.

    ``newest_job`` is the highest job id ever given, as far as can be known after an operator's word
    set other states aside; a new job gets the next one. Archived jobs are
    no part of it: see ``coordinator.state.archive``.
    """

    config: Config = field(default_factory=Config)
    jobs: Map[JobId, Job] = field(default_factory=Map)
    secrets: Map[str, Secret] = field(default_factory=Map)
    stamp: Stamp = field(default_factory=Stamp)
    newest_job: JobId = field(default=JobId(0))

    def apply(self, updates: Iterable[Update]) -> "State":
        """Return the state after ``updates``, in their order, with the stamp left as it is.

        Raises:
            Conflict: a name would be given twice.
            Bug: the newest job would be deleted; then its id might be given again.
        """
        jobs, secrets = self.jobs, self.secrets
        configured: list[Update] = []
        newest = self.newest_job
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
            elif isinstance(item, ArchivedJob):
                continue
            elif isinstance(item, Secret):
                if isinstance(update, Put):
                    secrets = secrets.set(item.id, item)
                elif item.id in secrets:
                    secrets = secrets.delete(item.id)
            else:
                configured.append(update)
                if isinstance(item, Cluster):
                    newest = max(newest, *(each.last_job for each in item.overrides), JobId(0))
        config = self.config.apply(configured) if configured else self.config
        return State(config, jobs, secrets, self.stamp, newest)

    def stamped(self, stamp: Stamp) -> "State":
        return State(self.config, self.jobs, self.secrets, stamp, self.newest_job)

    def items(self) -> Iterator[Stored]:
        """Yield everything that is stored, each object once."""
        if not self.config.is_empty:
            yield self.config.cluster
        yield from self.config.groups.values()
        yield from self.config.nodes.values()
        yield from self.config.instances.values()
        yield from self.config.disks.values()
        yield from self.config.nics.values()
        yield from self.secrets.values()
        yield from self.jobs.values()


def state_of(items: Iterable[Stored], stamp: Stamp) -> State:
    """Build the state that consists of ``items``."""
    return State().apply(Put(item) for item in items).stamped(stamp)
