"""Rows of other versions: which are read, which are made new, and which keep a node from office.

A row tells the version of its kind that wrote it, and the lowest that may be master over it
(``common.model.stored.Schema``); one that tells nothing is of the first. Older rows go through the
upgrades of their kind. Newer ones are read as they are where that is allowed; else whoever reads
them cannot be master, since it would misread them.
"""

from typing import Any

import msgspec

from common.errors import InvalidRequest
from common.messages import to_builtins
from common.model.stored import Foreign, Schema, Stored
from common.noderpc.replica import Row
from coordinator.state.kinds import Kind
from coordinator.state.unknown import gather

FIRST = Schema()


class _Head(msgspec.Struct):
    """What any row tells of itself."""

    schema: Schema = FIRST


def read_foreign(row: Row) -> Foreign:
    """Take in a row of an unknown kind.

    Raises:
        InvalidRequest: this version may not be master over it; names it.
        msgspec.DecodeError: it is no row.
    """
    schema = msgspec.json.decode(row.body, type=_Head).schema
    if schema.since > 0:
        raise InvalidRequest(
            f"The state has a row of the unknown kind “{row.kind}” ({row.id}), which only a newer "
            "version of Gantry understands. Make a node master that has it."
        )
    return Foreign(kind=row.kind, id=row.id, body=row.body)


def read_of_version(row: Row, kind: Kind[Any, Any]) -> Stored:
    """Read a row that is not written as this version would write it.

    Raises:
        InvalidRequest: this version may not be master over it; names it.
        msgspec.DecodeError: it cannot be read.
    """
    schema = msgspec.json.decode(row.body, type=_Head).schema
    value = msgspec.json.decode(row.body)
    if schema.version > kind.version:
        if schema.since > kind.version:
            raise InvalidRequest(
                f"The state's row {row.kind} {row.id} is of version {schema.version}, and this "
                f"version of Gantry knows {kind.version}: it would misread it. Make a node master "
                "that has the newer one.",
            )
    else:
        for upgrade in kind.upgrades[schema.version - 1 :]:
            value = upgrade(value)
        value = _marked(value, kind)
    item: Stored = msgspec.convert(gather(value, kind.type), kind.type)
    return item


def _marked(value: dict[str, Any], kind: Kind[Any, Any]) -> dict[str, Any]:
    plain = {name: each for name, each in value.items() if name != "schema"}
    return plain if kind.schema is msgspec.UNSET else plain | {"schema": to_builtins(kind.schema)}


def marked(item: Stored, kind: Kind[Any, Any]) -> Stored:
    """Return an object with the version that wrote it: this one, unless it is of a newer one."""
    if item.schema == kind.schema:
        return item
    if item.schema is not msgspec.UNSET and item.schema.version > kind.version:
        return item
    return msgspec.structs.replace(item, schema=kind.schema)
