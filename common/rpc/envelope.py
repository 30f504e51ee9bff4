"""What goes with every call besides its arguments, and the form of its answer."""

from typing import Any

import msgspec

from common.errors import (
    BadAnswer,
    Cancelled,
    GntError,
    InvalidRequest,
    NodeFailure,
    Stuck,
    Unreachable,
)
from common.messages import Order, Report, from_json, to_json
from common.names import CallId, Epoch, JobId, Word
from common.rpc.clock import GOOD_UNTIL, Reading

EPOCH, CALL, JOB = "Gantry-Epoch", "Gantry-Call", "Gantry-Job"
_FIELDS = (("epoch", EPOCH), ("call", CALL), ("job", JOB))


class Envelope(Order, kw_only=True):
    """Travels as HTTP headers.

    ``good_until`` is when the caller gives up, by the clock of the node that is called; None
    while it has not heard what that shows.
    """

    epoch: Epoch
    call: CallId
    job: JobId | None = None
    good_until: Reading | None = None

    def headers(self) -> dict[str, str]:
        named = {EPOCH: str(self.epoch), CALL: self.call}
        if self.job is not None:
            named[JOB] = str(self.job)
        if self.good_until is not None:
            named[GOOD_UNTIL] = self.good_until.header()
        return named


def read_headers(headers: Any) -> Envelope:
    """Read an envelope from a mapping of HTTP headers.

    Raises:
        InvalidRequest: one is missing, no number, or out of bounds.
    """
    given = {field: headers[name] for field, name in _FIELDS if name in headers}
    try:
        if GOOD_UNTIL in headers:
            given["good_until"] = Reading.parse(headers[GOOD_UNTIL])
        # Not strict, as headers are texts: "7" is a number.
        return msgspec.convert(given, Envelope, strict=False)
    except ValueError as error:  # of msgspec, too
        raise InvalidRequest(f"The call lacks a good header: {error}.") from error


LONGEST_MESSAGE = 4096  # characters of an error; what is beyond is cut off
LARGEST_DETAIL = 16 << 10  # bytes; details that are larger are left out

# What only the coordinator can know, a node cannot say of itself.
_NOT_OF_NODES = (Unreachable, Stuck, Cancelled, BadAnswer)


class _Failure(Report):
    code: Word
    message: str
    detail: dict[str, msgspec.Raw] = {}


class _Answer(Report):
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Failure | None = None


def answer(result: Any) -> bytes:
    """Encode the outcome of a call that went well."""
    return to_json({"result": result})


def failure(error: GntError) -> bytes:
    """Encode an expected error."""
    told = {"code": error.code, "message": error.message, "detail": error.detail}
    return to_json({"error": told})


def open_answer(data: bytes, returns: Any, *, what: str) -> Any:
    """Return the result, or raise the error that the other side raised.

    Raises:
        GntError: of the class the node raised.
        BadAnswer: the answer is not of the agreed form, or out of all bounds.
    """
    try:
        told = from_json(data, _Answer, what=what)
        if told.error is None:
            return from_json(told.result, returns, what=what)
        size = sum(len(value) for value in told.error.detail.values())
        kept = told.error.detail if size <= LARGEST_DETAIL else {}
        detail = {key: from_json(value, Any, what=what) for key, value in kept.items()}
    except InvalidRequest as error:
        raise BadAnswer(error.message) from error
    raise said_by_node(told.error.code, told.error.message, detail)


def said_by_node(code: str, message: str, detail: dict[str, Any]) -> GntError:
    """Return the error that a node tells of, as one that a node can have."""
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}…"
    error = GntError.from_code(code, message, detail)
    if type(error) is GntError or isinstance(error, _NOT_OF_NODES):
        return GntError.from_code(NodeFailure.code, message, detail)
    return error
