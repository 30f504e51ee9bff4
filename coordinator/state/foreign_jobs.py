"""Read the rows of jobs that a newer version wrote, after a downgrade.

A node that cannot read some job must still be able to become master. Fields that this version does
not know are left out; whether it can go on with the job is for the queue to find out.
"""

from typing import Any

import msgspec

from common.model.job import Dependency, Entry, Failure, Job, LogEntry, OperationRecord

_PARTS: dict[type[msgspec.Struct], dict[str, type[msgspec.Struct]]] = {
    Job: {"ops": OperationRecord, "depends": Dependency},
    OperationRecord: {"log": LogEntry, "failure": Failure, "journal": Entry},
}


def read_foreign_job(body: msgspec.Raw) -> Job:
    """Read a job's row, leaving out what is not known.

    Raises:
        msgspec.DecodeError: what is known does not fit.
    """
    return msgspec.convert(_known(msgspec.json.decode(body), Job), Job)


def _known(value: Any, kind: type[msgspec.Struct]) -> Any:
    """Return plain values without the fields that ``kind`` and its parts do not have."""
    if isinstance(value, list):
        return [_known(each, kind) for each in value]
    if not isinstance(value, dict):
        return value
    parts = _PARTS.get(kind, {})
    return {
        name: _known(value[name], parts[name]) if name in parts else value[name]
        for name in kind.__struct_fields__
        if name in value
    }
