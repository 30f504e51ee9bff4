"""What everything has that is kept in rows, so that versions can share them.

A candidate may be older than the one that wrote a row. What it does not know of a row it keeps, and
writes back: see ``coordinator.state.unknown``.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from common.messages import Order

UNKNOWN = "?"  # name of what holds unknown fields in memory; no field of a row is called so


class Schema(Order, array_like=True):
    """Which version of its kind wrote a row, and the lowest that may be master over it.

    Of a kind that is not known at all the version counts as 0.
    """

    version: Annotated[int, Meta(ge=1)] = 1
    since: Annotated[int, Meta(ge=0)] = 1


class Part(Order, kw_only=True, repr_omit_defaults=True):
    """Base of what is in rows; fields that only a newer version knows stay with the rest."""

    unknown: dict[str, Any] | UnsetType = msgspec.field(default=UNSET, name=UNKNOWN)


class Stored(Part, kw_only=True):
    """Base of what is a row of its own. One of the first version does not tell its schema."""

    schema: Schema | UnsetType = UNSET


class Foreign(Stored, kw_only=True):
    """A row of a kind that only a newer version knows, carried along as it is."""

    kind: str
    id: str
    body: msgspec.Raw
