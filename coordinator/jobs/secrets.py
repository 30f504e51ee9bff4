"""What an operation is told and nobody else may ever read, such as a join token.

It is never stored: what a file once had stays in its free pages, in its log and in copies of it,
longer than anybody can say. So it lives in the memory of the coordinator that was told it, and
ends with that. A job that still needs it then fails, and undoes what it did.
"""

from collections.abc import Mapping
from typing import Any

from common.errors import Conflict
from common.model.job import OperationRecord
from common.names import JobId
from coordinator.operations.parameter import LOST


def with_secrets(record: OperationRecord, secrets: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation in wire form; secrets that nobody knows any more are ``LOST``."""
    return {**dict.fromkeys(record.secret, LOST), **record.input, **secrets}


def check_secrets(job: JobId, record: OperationRecord, secrets: Mapping[str, Any]) -> None:
    """Refuse to begin an operation whose secrets are lost.

    Raises:
        Conflict: names them.
    """
    # An earlier version kept them with the other parameters until the job had ended.
    lost = [name for name in record.secret if name not in secrets and name not in record.input]
    if lost:
        raise Conflict(
            f"Job {job} cannot begin: its {' and '.join(lost)} was never stored, and the "
            "coordinator that was told it has ended. Nothing was done. Give the command again.",
            job=job,
        )
