"""Which rows may look otherwise than at an earlier moment; rather too many than too few.

The maps of states share what stays the same: an object that is not the very same has changed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from common.errors import GntError
from common.model.job import Job
from common.names import InstanceId, JobId, MiB, NetworkId, NodeId
from common.noderpc.instances import GuestReport
from coordinator.queries.live import Live
from coordinator.state import kinds
from coordinator.state.config import Config
from coordinator.state.kinds import Kind
from coordinator.state.state import State

CLUSTER = "cluster"
KINDS: tuple[Kind[Any, Any], ...] = (
    kinds.GROUP, kinds.NETWORK, kinds.NODE, kinds.INSTANCE,
)  # fmt: skip
JOB = "job"

Found = defaultdict[str, set[Any]]  # keys by kind


@dataclass(frozen=True, slots=True)
class Moment:
    """The state, what nodes told last, and by job that has not ended the nodes that it concerns.

    Those are what its operations name, and where the instances are, or were since the job was seen,
    that they name.
    """

    state: State = field(default_factory=State)
    live: Live = field(default_factory=Live)
    open_jobs: Mapping[JobId, frozenset[NodeId]] = field(default_factory=dict)

    def next(self, state: State, live: Live) -> "Moment":
        """Return a later one."""
        jobs = {*self.open_jobs, *changed_jobs(self, state)}
        concerns = {
            number: self.concerns(job, state)
            for number in jobs
            if (job := state.jobs.get(number)) is not None and not job.status.is_final
        }
        return Moment(state, live, concerns)

    def concerns(self, job: Job, state: State) -> frozenset[NodeId]:
        """Return the nodes that a job concerns, or did before ``state``."""
        nodes = set(self.open_jobs.get(job.id, ()))
        for name in {name for op in job.ops for name in _names(op.input)}:
            for config in (self.state.config, state.config):
                if (node := config.find_node(name)) is not None:
                    nodes.add(node.uuid)
                if (instance := config.find_instance(name)) is not None:
                    nodes.update(config.nodes_of(instance))
        return frozenset(nodes)


def changed_rows(before: Moment, now: Moment) -> Mapping[str, set[Any]]:
    """Return the keys of rows that may have changed, been made, or gone, by kind."""
    found: Found = defaultdict(set)
    old, new = before.state.config, now.state.config
    if old is not new:
        _find_configured(old, new, found)
    if before.live is not now.live:
        _find_told(before.live, now.live, new, found)
    found[JOB] |= changed_jobs(before, now.state)
    return found


def changed_jobs(before: Moment, now: State) -> set[JobId]:
    """Return the jobs that are others, new or gone.

    There are many, and those that have ended stay as they are until they are archived: only if
    their number is not what it should be, all are looked at.
    """
    old, new = before.state.jobs, now.jobs
    if old is new:
        return set()
    candidates = {*before.open_jobs, *_numbers_after(before.state, now)}
    found = {JobId(each) for each in candidates if old.get(each) is not new.get(each)}
    grown = sum((each in new) - (each in old) for each in found)
    return found if len(new) == len(old) + grown else _differing(old, new)


def ended_on(before: Moment, now: State) -> set[NodeId]:
    """Return the nodes that jobs concern which have ended since."""
    candidates = (*before.open_jobs, *_numbers_after(before.state, now))
    ended = (
        job
        for number in candidates
        if (job := now.jobs.get(number)) is not None and job.status.is_final
    )
    nodes = {node for job in ended for node in before.concerns(job, now)}
    return {node for node in nodes if node in now.config.nodes}


def _numbers_after(before: State, now: State) -> Iterator[JobId]:
    return (JobId(each) for each in range(before.newest_job + 1, now.newest_job + 1))


def _names(given: Mapping[str, Any]) -> Iterator[str]:
    for value in given.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, str))


def _find_configured(old: Config, new: Config, found: Found) -> None:
    found[CLUSTER].add(CLUSTER)
    for kind in KINDS:
        found[kind.name] |= _differing(old.table(kind), new.table(kind))
    if _others_show(old, new):
        for kind in KINDS:
            found[kind.name] |= {*old.table(kind), *new.table(kind)}
        return
    nics = _with_parts(old, new, kinds.NIC, "nics")
    found[kinds.NETWORK.name] |= _networks(old, new, found[kinds.INSTANCE.name] | nics)
    found[kinds.GROUP.name] |= {*new.groups}  # they tell their nodes and instances; there are few
    for node in found[kinds.NODE.name]:
        there = (*new.instances_on(node), *new.instances_with_secondary(node))
        found[kinds.INSTANCE.name] |= {each.uuid for each in there}
    found[kinds.INSTANCE.name] |= _with_parts(old, new, kinds.DISK, "disks")
    found[kinds.INSTANCE.name] |= nics
    for config in (old, new):
        for uuid in found[kinds.INSTANCE.name]:
            if (instance := config.instances.get(uuid)) is not None:
                found[kinds.NODE.name] |= {*config.nodes_of(instance)}


def _networks(old: Config, new: Config, instances: Iterable[InstanceId]) -> set[NetworkId]:
    """Return the networks in which instances have nics, or had."""
    return {
        nic.network
        for config in (old, new)
        for instance in filter(None, map(config.instances.get, instances))
        for nic in config.nics_of(instance)
        if nic.network
    }


def _with_parts(old: Config, new: Config, kind: Kind[Any, Any], parts: str) -> set[InstanceId]:
    """Return the instances of which a disk or nic has changed."""
    changed = _differing(old.table(kind), new.table(kind))
    if not changed:
        return set()
    return {
        uuid
        for config in (old, new)
        for uuid, instance in config.instances.items()
        if not changed.isdisjoint(getattr(instance, parts))
    }


def _find_told(old: Live, new: Live, config: Config, found: Found) -> None:
    for node in {*old.facts, *new.facts}:
        if old.facts.get(node) != new.facts.get(node):
            found[kinds.NODE.name].add(node)
    for node in {*old.guests, *new.guests}:
        before, now = _guests(old, node), _guests(new, node)
        if before is None or now is None:
            if before is not now:
                found[kinds.INSTANCE.name] |= {each.uuid for each in config.instances_on(node)}
            before, now = before or {}, now or {}
        found[kinds.INSTANCE.name] |= {
            uuid for uuid in {*before, *now} if before.get(uuid) != now.get(uuid)
        }


def _guests(live: Live, node: NodeId) -> dict[InstanceId, GuestReport] | None:
    """Return what a node told of its guests, but for what changes all the time."""
    told = live.guests.get(node)
    if told is None or isinstance(told, GntError):
        return None
    return {each.id: replace(each, cpu_seconds=0.0, resident=MiB(0), silent_s=0.0) for each in told}


def _others_show(old: Config, new: Config) -> bool:
    """Tell whether the cluster, a group or a network has changed in what rows of others show."""
    for kind in _SHARED:
        before, now = old.table(kind), new.table(kind)
        for key in _differing(before, now):
            if key not in before or key not in now:
                return True
            names = [name for name in now[key].__struct_fields__ if name not in _SHOWN_ALONE]
            if any(getattr(before[key], name) != getattr(now[key], name) for name in names):
                return True
    return False


_SHARED: tuple[Kind[Any, Any], ...] = (kinds.CLUSTER, kinds.GROUP, kinds.NETWORK)
# What is told of an object in its own row alone.
_SHOWN_ALONE = frozenset({
    "alloc_policy", "archive_jobs_after_s", "candidate_pool_size", "default_iallocator",
    "default_iallocator_params", "default_iallocators", "delete_jobs_after_s", "max_running_jobs",
    "mtime", "overrides", "queue_drained", "serial_no", "tags", "watcher_pause",
})  # fmt: skip


def _differing(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> set[Any]:
    """Return the keys under which the two do not have the same."""
    if old is new:
        return set()
    changed = {key for key, value in new.items() if old.get(key) is not value}
    return changed | {key for key in old if key not in new}
