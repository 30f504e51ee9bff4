"""What the state is made of: objects in memory, rows of JSON in the replicas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from common.errors import Bug, InvalidRequest
from common.messages import to_json
from common.model.commit import GONE, Change
from common.model.stored import Foreign, Stored
from common.noderpc.replica import Row
from coordinator.state.kinds import KINDS, Kind, kind_of
from coordinator.state.unknown import MARK
from coordinator.state.versions import from_values, read_foreign, to_values, with_version

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


def settle(update: Update) -> tuple[Update, Change]:
    """Encode an update, and return it as whoever reads the change will understand it.

    What is kept in memory is thereby exactly what a successor loads, and shares nothing
    that could be altered with the caller's object.

    Raises:
        InvalidRequest: the object is nested too deeply to be stored.
        Bug: it cannot be read back: some field is not of its declared type.
    """
    item = update.item
    if isinstance(update, Delete) or isinstance(item, Foreign):
        row = GONE if isinstance(update, Delete) else to_row(item).body
        name, key = name_of(item)
        return update, Change(kind=name, id=key, body=row)
    kind = kind_of(item)
    key = str(kind.key(item))
    try:
        body = _written(item, kind)
        if _is_too_deep(body):
            raise InvalidRequest(
                f"The {kind.name} {key} cannot be stored: its values are nested more than "
                f"{DEEPEST} levels deep."
            )
        same = _read(body, kind)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise Bug(
            f"The {kind.name} {key} cannot be stored: it would not be readable ({error})."
        ) from error
    except RecursionError as error:
        raise InvalidRequest(
            f"The {kind.name} {key} cannot be stored: its values are nested too deeply."
        ) from error
    return Put(same), Change(kind=kind.name, id=key, body=msgspec.Raw(body))


def name_of(item: Stored) -> tuple[str, str]:
    """Return the kind and the id of an object's row."""
    if isinstance(item, Foreign):
        return item.kind, item.id
    kind = kind_of(item)
    return kind.name, str(kind.key(item))


def to_row(item: Stored) -> Row:
    """Write an object as this version does."""
    name, key = name_of(item)
    if isinstance(item, Foreign):
        return Row(kind=name, id=key, body=item.body)
    return Row(kind=name, id=key, body=msgspec.Raw(_written(item, kind_of(item))))


def from_row(row: Row) -> Stored:
    """Read one row of a replica, of whatever version.

    Raises:
        InvalidRequest: the row is damaged, or of a version too new; names it.
    """
    try:
        kind = KINDS.by_name.get(row.kind)
        return read_foreign(row) if kind is None else _read(row.body, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"The state's row {row.kind} {row.id} cannot be read: {error}. It is "
            "damaged, or a newer version of Gantry has written it."
        ) from error


def _written(item: Stored, kind: Kind[Any, Any]) -> bytes:
    body = to_json(with_version(item, kind))
    return to_json(to_values(item, type(item))) if MARK in body else body


def _read(body: bytes | msgspec.Raw, kind: Kind[Any, Any]) -> Stored:
    try:
        item: Stored = kind.decoder.decode(body)
        if item.schema == kind.schema:
            return item
    except msgspec.ValidationError:
        pass  # it may be of another version
    read: Stored = from_values(msgspec.json.decode(body), kind.type)
    return read


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
