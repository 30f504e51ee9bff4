"""Read what an operation's record holds; another version of Gantry may have written it.

After an upgrade or a downgrade the queue goes on with the jobs that it finds, as far as they can be
read. The rule for the others: one that had not begun ends as an error and can be sent again; one
that was half done ends as *stuck* and says which of its steps had begun, since nobody but an
operator can tell what to make of them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from common.complaints import in_words
from common.errors import InvalidRequest, Stuck
from common.model.job import OperationRecord
from common.names import JobId
from coordinator.jobs.secrets import check_secrets, with_secrets
from coordinator.operations.base import Operation, read_operation
from coordinator.operations.cluster_view import Cluster
from coordinator.state.versions import from_values

# Versions before 2 told these by a parameter that they had room already; the node was named, too.
_ONCE_RESERVED = ("OP_INSTANCE_CREATE", "OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE")


def read_queued(
    job: JobId, record: OperationRecord, secrets: Mapping[str, Any]
) -> tuple[Operation[Any, Any], Any]:
    """Read an operation that has not begun, and the choice that was made for it, if any.

    Raises:
        InvalidRequest: this version does not know it, or not in this form.
        Conflict: it needs a secret that is lost.
    """
    check_secrets(job, record, secrets)
    try:
        return read_choice(record, secrets)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"Job {job} was queued by another version of Gantry, and this one cannot read it: "
            f"{error.message} Nothing was done; give the command again."
        ) from error


def read_plan(
    job: JobId, record: OperationRecord, secrets: Mapping[str, Any], cluster: Cluster
) -> tuple[Operation[Any, Any], Any]:
    """Read an operation that was begun, and its plan; its secrets may be ``LOST``.

    Raises:
        Stuck: this version cannot go on with it, neither forward nor back.
    """
    try:
        operation = read_operation(_parameters(record, secrets))
        plan = _read(record, record.plan, operation.plan_type, operation.version, "its plan")
    except InvalidRequest as error:
        raise _stuck(job, record, error.message) from error
    known = {step.title for step in operation.recipe(cluster, plan)}
    unknown = dict.fromkeys(e.step for e in record.journal if e.step not in known)
    if unknown:
        raise _stuck(job, record, f"Unknown steps: {_quoted(unknown)}.")
    return operation, plan


def read_choice(
    record: OperationRecord, secrets: Mapping[str, Any]
) -> tuple[Operation[Any, Any], Any]:
    """Read an operation that waits, and its choice; its secrets may be ``LOST``.

    Raises:
        InvalidRequest: this version does not know it, or not in this form.
    """
    operation = read_operation(_parameters(record, secrets))
    if record.choice is None:
        return operation, None
    kind, version = operation.choice_type, operation.version
    return operation, _read(record, record.choice, kind, version, "its choice")


def _read(record: OperationRecord, values: Any, kind: Any, version: int, what: str) -> Any:
    """Read a plan or a choice, with the objects in it, of the version that this one makes."""
    if record.version != version:
        raise InvalidRequest(
            f"{what.capitalize()} is of version {record.version}, and this version of Gantry "
            f"knows {version}."
        )
    try:
        return from_values(values, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidRequest(f"Cannot read {what}: {in_words(str(error))}.") from error


def _parameters(record: OperationRecord, secrets: Mapping[str, Any]) -> dict[str, Any]:
    wire = with_secrets(record, secrets)
    if wire.get("OP_ID") in _ONCE_RESERVED:
        wire.pop("reserved", None)
    return wire


def _stuck(job: JobId, record: OperationRecord, why: str) -> Stuck:
    undone = {entry.step for entry in record.journal if entry.event == "undone"}
    begun = dict.fromkeys(e.step for e in record.journal if e.step not in undone)
    steps = f"These of its steps had begun and stay as they are: {_quoted(begun)}."
    return Stuck(
        f"Job {job} was begun by another version of Gantry, and this one cannot go on with it: "
        f"{why} {steps if begun else 'None of its steps had begun.'} Nothing was undone. Look at "
        "what is left with “gnt-cluster verify”."
    )


def _quoted(titles: dict[str, None]) -> str:
    return ", ".join(f"“{title}”" for title in titles)
