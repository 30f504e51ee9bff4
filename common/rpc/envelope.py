"""What goes with every call besides its arguments, and the form of its answer."""

from typing import Any

import msgspec

from common.errors import GntError, InvalidRequest
from common.messages import Order, Report, from_json, to_json
from common.names import CallId, Epoch, JobId

EPOCH, CALL, JOB, TIMEOUT = "Gantry-Epoch", "Gantry-Call", "Gantry-Job", "Gantry-Timeout"


class Envelope(Order, kw_only=True):
    """Travels as HTTP headers.

    ``timeout_s`` is what is left of the caller's patience; a duration, because the clocks
    of two nodes may differ.
    """

    epoch: Epoch
    call: CallId
    job: JobId | None = None
    timeout_s: float

    def headers(self) -> dict[str, str]:
        named = {EPOCH: str(self.epoch), CALL: self.call, TIMEOUT: f"{self.timeout_s:.3f}"}
        return named if self.job is None else named | {JOB: str(self.job)}


def read_headers(headers: Any) -> Envelope:
    """Read an envelope from a mapping of HTTP headers.

    Raises:
        InvalidRequest: one is missing, no number, or out of bounds.
    """
    named = {"epoch": EPOCH, "call": CALL, "job": JOB, "timeout_s": TIMEOUT}
    given = {field: headers[name] for field, name in named.items() if name in headers}
    try:
        # Not strict, as headers are texts: "7" is a number.
        return msgspec.convert(given, Envelope, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The call lacks a good header: {error}.") from error


class _Failure(Report):
    code: str
    message: str
    detail: dict[str, Any] = {}


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
        InvalidRequest: the answer is not of the agreed form.
    """
    told = from_json(data, _Answer, what=what)
    if told.error is not None:
        raise GntError.from_code(told.error.code, told.error.message, told.error.detail)
    return from_json(told.result, returns, what=what)
