"""What the state is made of: objects in memory, rows of JSON in the replicas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from common.errors import Bug, InvalidRequest
from common.messages import to_json
from common.model.cluster import Cluster
from common.model.commit import ARCHIVE, GONE, Change
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import Instance
from common.model.job import ArchivedJob, Job
from common.model.nic import Nic
from common.model.node import Node
from common.model.secret import Secret
from common.noderpc.replica import Row
from coordinator.state.foreign_jobs import read_foreign_job

Stored = Cluster | Group | Node | Instance | Disk | Nic | Job | ArchivedJob | Secret
KINDS: dict[str, type[Stored]] = {
    "cluster": Cluster,
    "group": Group,
    "node": Node,
    "instance": Instance,
    "disk": Disk,
    "nic": Nic,
    "job": Job,
    ARCHIVE: ArchivedJob,
    "secret": Secret,
}
DEEPEST = 200  # levels of JSON in a row; jq 1.6 reads 256, and a commit adds some around it


@dataclass(frozen=True, slots=True)
class Put:
    """Add ``item``, or replace the one with its identity."""

    item: Stored


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the object with the identity of ``item``; one that is not there is fine."""

    item: Stored


Update = Put | Delete


def kind_of(item: Stored) -> str:
    return _KIND_OF[type(item)]


def id_of(item: Stored) -> str:
    if isinstance(item, Job | Secret):
        return str(item.id)
    if isinstance(item, ArchivedJob):
        return str(item.job.id)
    return item.uuid


def settle(update: Update) -> tuple[Update, Change]:
    """Encode an update, and return it as whoever reads the change will understand it.

    What is kept in memory is thereby exactly what a successor loads, and shares nothing
    that could be altered with the caller's object.

    Raises:
        InvalidRequest: the object is nested too deeply to be stored.
        Bug: it cannot be read back: some field is not of its declared type.
    """
    item = update.item
    kind = _KIND_OF[type(item)]
    if isinstance(update, Delete):
        return update, Change(kind=kind, id=id_of(item), body=GONE)
    try:
        body = to_json(item)
        if _is_too_deep(body):
            raise InvalidRequest(
                f"The {kind} {id_of(item)} cannot be stored: its values are nested more than "
                f"{DEEPEST} levels deep."
            )
        same: Stored = _DECODERS[kind].decode(body)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise Bug(
            f"The {kind} {id_of(item)} cannot be stored: it would not be readable ({error})."
        ) from error
    except RecursionError as error:
        raise InvalidRequest(
            f"The {kind} {id_of(item)} cannot be stored: its values are nested too deeply."
        ) from error
    return Put(same), Change(kind=kind, id=id_of(item), body=msgspec.Raw(body))


def to_row(item: Stored) -> Row:
    return Row(kind=_KIND_OF[type(item)], id=id_of(item), body=msgspec.Raw(to_json(item)))


def from_row(row: Row) -> Stored:
    """Read one row of a replica.

    Raises:
        InvalidRequest: the row is damaged or of a newer version; names it.
    """
    if row.kind not in _DECODERS:
        raise InvalidRequest(
            f"The state has a row of the unknown kind “{row.kind}” ({row.id}); was it written "
            "by a newer version?"
        )
    try:
        return _decoded(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"The state's row {row.kind} {row.id} cannot be read: {error}."
        ) from error


def _decoded(row: Row) -> Stored:
    try:
        item: Stored = _DECODERS[row.kind].decode(row.body)
    except msgspec.ValidationError:
        if row.kind != "job":
            raise
        return read_foreign_job(row.body)
    return item


_KIND_OF: dict[type, str] = {kind: name for name, kind in KINDS.items()}
_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in KINDS.items()}
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|[\]}]')


def _is_too_deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= DEEPEST:  # nearly always; costs microseconds
        return False
    return any(depth > DEEPEST for depth in _depths(body))


def _depths(body: bytes) -> Iterator[int]:
    depth = 0
    for match in _BRACKETS.finditer(body):
        if match[1]:
            depth += 1
            yield depth
        elif not match[0].startswith(b'"'):
            depth -= 1
