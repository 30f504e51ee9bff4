"""Every error that may cross a process boundary, with its stable code.

GntError
├── InvalidRequest      the caller asked for something malformed       HTTP 400  exit 2
│   └── NotSupported    Ganeti can do it, and we cannot                 HTTP 501  exit 2
├── NotFound            the named object is not in the configuration   HTTP 404  exit 3
├── Conflict            well-formed, but not in the present state      HTTP 409  exit 4
│   ├── Deposed         another node is master; epochs tell             HTTP 409  exit 11
│   ├── Expired         came after its caller's time; nothing was done  HTTP 412  exit 4
│   └── NotListed       the caller is no master candidate               HTTP 409  exit 11
├── NoCapacity          nothing is wrong; there is no room now         HTTP 503  exit 6
├── NodeFailure         the node answered: it tried, and it failed     HTTP 502  exit 7
│   └── BadAnswer       what it answered is no answer                  HTTP 502  exit 7
├── Unreachable         the node did not answer; outcome unknown       HTTP 504  exit 8
├── Stuck               an undo failed; an operator has to look        HTTP 500  exit 9
├── Cancelled           the operator cancelled the job                 HTTP 409  exit 10
└── Bug                 an invariant of ours is broken                 HTTP 500  exit 70

Choose the class by what the caller can do about it. The message is a full sentence for
an operator; values for programs are keyword detail (strings, numbers, lists of them).
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost the short commands 8 ms
if TYPE_CHECKING:
    from typing import Any, ClassVar


class GntError(Exception):
    """Base of all expected errors."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    by_code: ClassVar[dict[str, type[GntError]]] = {}

    # By position only: a detail may have any name, those of our own arguments included.
    def __init__(self, message: str, /, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def __init_subclass__(cls) -> None:
        GntError.by_code[cls.code] = cls

    @staticmethod
    def from_code(code: str, message: str, detail: dict[str, Any]) -> GntError:
        """Rebuild an error that crossed a wire; an unknown code keeps its nearest parent."""
        while code and code not in GntError.by_code:
            code = code.rpartition(".")[0]
        return GntError.by_code.get(code, GntError)(message, **detail)


class InvalidRequest(GntError):
    code = "invalid-request"
    http_status = 400
    exit_code = 2


class NotSupported(InvalidRequest):
    code = "invalid-request.not-supported"
    http_status = 501


class NotFound(GntError):
    code = "not-found"
    http_status = 404
    exit_code = 3


class Conflict(GntError):
    code = "conflict"
    http_status = 409
    exit_code = 4


class Deposed(Conflict):
    """A call carried an older epoch than the node has granted; who calls is not master."""

    code = "conflict.deposed"
    exit_code = 11


class Expired(Conflict):
    """An order came, or got its turn, when its caller had given up; it was not carried out."""

    code = "conflict.expired"
    http_status = 412


class NotListed(Conflict):
    """A node does not listen to who calls: it is no master candidate, as far as the node knows.

    ``listed`` in the detail are those to whom it listens; ``age`` is epoch and serial of the state
    that this list was made from, where that is known.
    """

    code = "conflict.not-listed"
    exit_code = 11


class NoCapacity(GntError):
    code = "no-capacity"
    http_status = 503
    exit_code = 6


class NodeFailure(GntError):
    code = "node-failure"
    http_status = 502
    exit_code = 7


class BadAnswer(NodeFailure):
    """A node answered something absurd: too large, malformed, or out of all bounds."""

    code = "node-failure.bad-answer"


class Unreachable(GntError):
    code = "unreachable"
    http_status = 504
    exit_code = 8


class Stuck(GntError):
    code = "stuck"
    exit_code = 9


class Cancelled(GntError):
    code = "cancelled"
    http_status = 409
    exit_code = 10


class Bug(GntError):
    code = "bug"
    exit_code = 70
