"""The fields of a lock; names, titles, kinds and texts are Ganeti's."""

from coordinator.locks.report import LockRow
from coordinator.queries.field import Field, Kind, table

# fmt: off
_FIELDS: tuple[Field[LockRow], ...] = (
    Field("name", "Name", Kind.TEXT, "Lock name", lambda row: str(row.name)),
    Field("mode", "Mode", Kind.OTHER,
          "Mode in which the lock is currently acquired (exclusive or shared)",
          lambda row: None if row.mode is None else row.mode.value),
    Field("owner", "Owner", Kind.OTHER, "Current lock owner(s)",
          lambda row: list(row.owners) or None),
    Field("pending", "Pending", Kind.OTHER, "Threads waiting for the lock",
          lambda row: [[mode.value, [owner]] for owner, mode in row.pending]),
)
# fmt: on

LOCK_FIELDS = table(_FIELDS)
