"""Which rows may look otherwise than at an earlier moment; rather too many than too few.

The maps of states share what stays the same: an object that is not the very same has changed.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from common.errors import GntError
from common.names import InstanceId, MiB, NodeId
from common.noderpc.instances import GuestReport
from coordinator.queries.live import Live
from coordinator.state import kinds
from coordinator.state.config import Config
from coordinator.state.kinds import Kind
from coordinator.state.state import State

CLUSTER = "cluster"
KINDS: tuple[Kind[Any, Any], ...] = (kinds.GROUP, kinds.NODE, kinds.INSTANCE)
JOB = "job"

Found = defaultdict[str, set[Any]]  # keys by kind


@dataclass(frozen=True, slots=True)
class Moment:
    """The state, and what nodes told last."""

    state: State = field(default_factory=State)
    live: Live = field(default_factory=Live)


def changed_rows(before: Moment, now: Moment) -> Mapping[str, set[Any]]:
    """Return the keys of rows that may have changed, been made, or gone, by kind."""
    found: Found = defaultdict(set)
    old, new = before.state.config, now.state.config
    if old is not new:
        _find_configured(old, new, found)
    if before.live is not now.live:
        _find_told(before.live, now.live, new, found)
    found[JOB] |= _differing(before.state.jobs, now.state.jobs)
    return found


def has_ended(before: State, now: State) -> bool:
    """Tell whether a job has ended since."""
    for number in _differing(before.jobs, now.jobs):
        old, new = before.jobs.get(number), now.jobs.get(number)
        if new is not None and new.status.is_final and not (old and old.status.is_final):
            return True
    return False


def _find_configured(old: Config, new: Config, found: Found) -> None:
    found[CLUSTER].add(CLUSTER)
    for kind in KINDS:
        found[kind.name] |= _differing(old.table(kind), new.table(kind))
    if found[kinds.GROUP.name] or not _same(old, new, kinds.CLUSTER):  # all have defaults of these
        for kind in KINDS:
            found[kind.name] |= {*old.table(kind), *new.table(kind)}
        return
    found[kinds.GROUP.name] |= {*new.groups}  # they tell their nodes and instances; there are few
    for node in found[kinds.NODE.name]:
        there = (*new.instances_on(node), *new.instances_with_secondary(node))
        found[kinds.INSTANCE.name] |= {each.uuid for each in there}
    found[kinds.INSTANCE.name] |= _with_parts(old, new, kinds.DISK, "disks")
    found[kinds.INSTANCE.name] |= _with_parts(old, new, kinds.NIC, "nics")
    for config in (old, new):
        for uuid in found[kinds.INSTANCE.name]:
            if (instance := config.instances.get(uuid)) is not None:
                found[kinds.NODE.name] |= {*config.nodes_of(instance)}


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


def _same(old: Config, new: Config, kind: Kind[Any, Any]) -> bool:
    return not _differing(old.table(kind), new.table(kind))


def _differing(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> set[Any]:
    """Return the keys under which the two do not have the same."""
    if old is new:
        return set()
    changed = {key for key, value in new.items() if old.get(key) is not value}
    return changed | {key for key in old if key not in new}
