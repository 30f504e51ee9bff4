"""What can be queried: its fields, and how its rows are found."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from common.errors import InvalidRequest
from common.luxi.failures import JobLost
from common.model.filter_rule import in_order
from common.model.stored import Stored
from common.names import JobId
from coordinator.locks.report import LockRow
from coordinator.queries.archived import with_archived
from coordinator.queries.cluster_fields import CLUSTER_FIELDS, ClusterRow
from coordinator.queries.exports import ExportRow, export_rows, with_exports
from coordinator.queries.field import Field, Kind, Table, table
from coordinator.queries.filter_rule_fields import FILTER_RULE_FIELDS, FilterRuleRow
from coordinator.queries.group_fields import GROUP_FIELDS, GroupRow
from coordinator.queries.instance_fields import INSTANCE_FIELDS
from coordinator.queries.instance_row import InstanceRow
from coordinator.queries.job_fields import JOB_FIELDS, JobRow
from coordinator.queries.live import Live
from coordinator.queries.lock_fields import LOCK_FIELDS
from coordinator.queries.lock_names import named
from coordinator.queries.network_fields import NETWORK_FIELDS, NetworkRow
from coordinator.queries.node_fields import NODE_FIELDS, NodeRow
from coordinator.queries.operating_systems import OS_FIELDS, os_rows, with_systems
from coordinator.queries.providers import PROVIDER_FIELDS, provider_rows, with_providers
from coordinator.queries.source import Source
from coordinator.state import kinds
from coordinator.state.config import Config

T = TypeVar("T", bound=Stored)


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of object.

    ``every`` gives all rows in order. ``named`` gives those of some names, as often and in
    the order they were asked for, and raises NotFound for a name that does not exist; None
    where rows have no names. ``fetched`` gives the source with what has to be fetched first for
    rows that fit a filter.
    """

    fields: Table[Any]
    key: str  # the field that has the name
    every: Callable[[Source, Live], Iterable[Any]]
    named: Callable[[Source, Live, Sequence[Any]], Iterable[Any]] | None = None
    fetched: Callable[[Source, Any], Awaitable[Source]] | None = None


def _of(
    kind: kinds.Kind[Any, T], fields: Table[Any], row: Callable[[T, Config, Live], Any]
) -> Subject:
    """Have the objects of a kind with names queried, each by a row of its own."""

    def every(source: Source, live: Live) -> Iterable[Any]:
        config = source.state.config
        return (row(each, config, live) for each in config.sorted(kind))

    def named(source: Source, live: Live, names: Sequence[Any]) -> Iterable[Any]:
        config = source.state.config
        return [row(config.get(kind, str(name)), config, live) for name in names]

    return Subject(fields, "name", every, named)


def _jobs(source: Source, _: Live) -> Iterable[JobRow]:
    jobs = {**source.archived, **source.state.jobs}
    return (JobRow(job, source.waits) for _, job in sorted(jobs.items()))


def _named_jobs(source: Source, _: Live, ids: Sequence[Any]) -> Iterable[JobRow]:
    return [find_job(source, text) for text in ids]


def _filters(source: Source, _: Live) -> Iterable[FilterRuleRow]:
    rules = source.state.config.table(kinds.FILTER).values()
    return (FilterRuleRow(rule) for rule in sorted(rules, key=in_order))


def _named_filters(source: Source, _: Live, uuids: Sequence[Any]) -> Iterable[FilterRuleRow]:
    config = source.state.config
    return [FilterRuleRow(config.get(kinds.FILTER, str(uuid))) for uuid in uuids]


def _locks(source: Source, _: Live) -> Iterable[LockRow]:
    config = source.state.config
    rows = [replace(row, name=named(row.name, config)) for row in source.locks()]
    return sorted(rows, key=lambda row: row.name)


def find_job(source: Source, text: Any) -> JobRow:
    """Return the job of an id, given as a number or its digits.

    Raises:
        InvalidRequest: no number.
        JobLost: there is no such job.
    """
    try:
        number = JobId(int(text))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"“{text}” is no number of a job.") from error
    job = source.state.jobs.get(number) or source.archived.get(number)
    if job is None:
        raise JobLost(f"There is no job {number}.", job=number)
    return JobRow(job, source.waits)


# fmt: off
_EXPORT_FIELDS: Table[ExportRow] = table((
    Field("export", "Export", Kind.TEXT, "Export name", lambda row: row.export),
    Field("node", "Node", Kind.TEXT, "Node name", lambda row: row.node),
))
SUBJECTS: dict[str, Subject] = {
    "cluster": Subject(CLUSTER_FIELDS, "name", lambda s, _: [ClusterRow(s.state.config)]),
    "export": Subject(
        _EXPORT_FIELDS, "export", lambda source, _: export_rows(source),
        fetched=lambda source, _: with_exports(source)),
    "extstorage": Subject(
        PROVIDER_FIELDS, "name", lambda source, _: provider_rows(source),
        fetched=lambda source, _: with_providers(source)),
    "filter": Subject(FILTER_RULE_FIELDS, "uuid", _filters, _named_filters),
    "group": _of(kinds.GROUP, GROUP_FIELDS, GroupRow),
    "instance": _of(kinds.INSTANCE, INSTANCE_FIELDS, InstanceRow),
    "job": Subject(JOB_FIELDS, "id", _jobs, _named_jobs, with_archived),
    "lock": Subject(LOCK_FIELDS, "name", _locks),
    "network": _of(kinds.NETWORK, NETWORK_FIELDS, NetworkRow),
    "node": _of(kinds.NODE, NODE_FIELDS, NodeRow),
    "os": Subject(
        OS_FIELDS, "name", lambda source, _: os_rows(source),
        fetched=lambda source, _: with_systems(source)),
}
# fmt: on


def find_subject(what: Any) -> Subject:
    """Return what is queried.

    Raises:
        InvalidRequest: there is no such kind.
    """
    if not isinstance(what, str) or what not in SUBJECTS:
        known = ", ".join(SUBJECTS)
        raise InvalidRequest(f"There is nothing called “{what}” to query; there are {known}.")
    return SUBJECTS[what]
