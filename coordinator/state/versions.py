"""Rows of other versions: which are read, which are made new, and which keep a node from office.

A row tells the version of its kind that wrote it, and the lowest that may be master over it
(``common.model.stored.Schema``); one that tells nothing is of the first. Older rows go through the
upgrades of their kind. Newer ones are read as they are where that is allowed; else whoever reads
them cannot be master, since it would misread them. The same holds for objects within plans.
"""

from typing import Any, TypeVar

import msgspec

from common.errors import InvalidRequest
from common.messages import to_builtins
from common.model.stored import Foreign, Schema, Stored
from common.noderpc.replica import Row
from coordinator.state.kinds import KINDS, Kind
from coordinator.state.unknown import Struct, Values, gather, scatter

T = TypeVar("T")

FIRST = Schema()


def to_values(item: Any, kind: Any) -> Any:
    """Return JSON values of a type, with all rows in them as this version writes them."""
    return scatter(to_builtins(item), kind, _with_version)


def from_values(values: Any, kind: type[T]) -> T:
    """Read JSON values of a type that a version wrote with ``to_values``, or with rows in them.

    Raises:
        InvalidRequest: this version would misread a row, or it is damaged; names it.
        msgspec.ValidationError: something does not fit.
    """
    return msgspec.convert(gather(values, kind, _made_new), kind)


def with_version(item: Stored, kind: Kind[Any, Any]) -> Stored:
    """Return an object with the version that wrote it: this one, unless it is of a newer one."""
    if item.schema == kind.schema:
        return item
    if item.schema is not msgspec.UNSET and item.schema.version > kind.version:
        return item
    return msgspec.structs.replace(item, schema=kind.schema)


def read_foreign(row: Row) -> Foreign:
    """Take in a row of an unknown kind.

    Raises:
        InvalidRequest: this version may not be master over it; names it.
        msgspec.DecodeError: it is no row.
    """
    schema = _schema_of(msgspec.json.decode(row.body, type=Values))
    if schema.since > 0:
        raise InvalidRequest(
            f"The state has a row of the unknown kind “{row.kind}” ({row.id}), which only a newer "
            "version of Gantry understands. Make a node master that has it."
        )
    return Foreign(kind=row.kind, id=row.id, body=row.body)


def _made_new(values: Values, struct: Struct) -> Values:
    """Return the values of a row as this version would have written them."""
    if not issubclass(struct, Stored):
        return values
    kind, schema = KINDS.by_type[struct], _schema_of(values)
    row = f"{kind.name} {values.get('uuid') or values.get('id')}"
    if schema.version > kind.version:
        if schema.since > kind.version:
            raise InvalidRequest(
                f"The row {row} is of version {schema.version}, and this version of Gantry knows "
                f"{kind.version}: it would misread it. Make a node master that has the newer one."
            )
        return values
    try:
        for upgrade in kind.upgrades[schema.version - 1 :]:
            values = upgrade(values)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(
            f"The row {row} is damaged: what version {schema.version} of it has cannot be made "
            f"what version {kind.version} has ({type(error).__name__}: {error})."
        ) from error
    return _marked(values, kind)


def _with_version(values: Values, struct: Struct) -> Values:
    if not issubclass(struct, Stored):
        return values
    kind = KINDS.by_type[struct]
    return values if _schema_of(values).version > kind.version else _marked(values, kind)


def _schema_of(values: Values) -> Schema:
    return msgspec.convert(values["schema"], Schema) if "schema" in values else FIRST


def _marked(values: Values, kind: Kind[Any, Any]) -> Values:
    plain = {name: each for name, each in values.items() if name != "schema"}
    return plain if kind.schema is msgspec.UNSET else plain | {"schema": to_builtins(kind.schema)}
