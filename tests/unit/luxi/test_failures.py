import pytest

from common import errors
from common.errors import GntError
from common.luxi.answers import Request, failure, read_request, success, unreadable
from common.luxi.failures import (
    JobLost,
    QueueDrained,
    QueueFull,
    from_ganeti,
    from_wire,
    to_ganeti,
    to_wire,
)

ALL = [*GntError.by_code.values()]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_our_client_gets_the_very_error(kind: type[GntError]) -> None:
    error = kind("No.", node="alpha", sizes=[1])
    found = from_wire(to_wire(error))
    assert type(found) is kind
    assert found.message == "No."
    assert found.detail == {"node": "alpha", "sizes": [1]}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.InvalidRequest("a"), ["OpPrereqError", ["a", "wrong_input"]]),
        (errors.NotFound("a"), ["OpPrereqError", ["a", "unknown_entity"]]),
        (errors.Conflict("a"), ["OpPrereqError", ["a", "wrong_state"]]),
        (errors.Deposed("a"), ["OpPrereqError", ["a", "wrong_state"]]),
        (errors.NoCapacity("a"), ["OpPrereqError", ["a", "insufficient_resources"]]),
        (errors.NodeFailure("a"), ["OpExecError", ["a"]]),
        (errors.Unreachable("a"), ["OpExecError", ["a"]]),
        (errors.Stuck("a"), ["OpExecError", ["a"]]),
        (errors.Bug("a"), ["ProgrammerError", ["a"]]),
        (errors.Cancelled("a"), ["JobCanceled", ["a"]]),
        (JobLost("a"), ["JobLost", ["a"]]),
        (QueueDrained("a"), ["JobQueueDrainError", ["a"]]),
        (QueueFull("a"), ["JobQueueFull", ["a"]]),
    ],
)
def test_ganetis_client_gets_its_own(error: GntError, told: list[object]) -> None:
    assert to_ganeti(error) == told
    assert to_ganeti(from_ganeti(told)) == told


@pytest.mark.parametrize(
    ("told", "kind", "message"),
    [
        (["OpPrereqError", ["a", "already_exists"]], errors.Conflict, "a"),
        (["OpPrereqError", ["a", "strange"]], errors.InvalidRequest, "a"),
        (["OpPrereqError", ["a"]], errors.InvalidRequest, "a"),
        (["HooksAbort", ["a", "b"]], GntError, "a"),
        ("only text", GntError, "only text"),
        (None, GntError, "does not say why"),
        ([1, 2], GntError, "does not say why"),
    ],
)
def test_any_answer_becomes_an_error(told: object, kind: type[GntError], message: str) -> None:
    error = from_ganeti(told)
    assert type(error) is kind
    assert message in error.message


@pytest.mark.parametrize("told", [None, 3, {}, {"code": 1, "message": "a", "detail": {}}, []])
def test_what_is_no_error_of_ours_is_none(told: object) -> None:
    assert from_wire(told) is None


def test_answers_echo_the_version_only_if_there_was_one() -> None:
    old = read_request(b'{"method": "Query", "args": ["node"], "version": 3000000, "new": 1}')
    assert old == Request(method="Query", args=("node",), version=3000000)
    assert success([1], old) == b'{"success":true,"result":[1],"version":3000000}\x03'
    plain = read_request(b'{"method": "X", "args": []}')
    assert success(None, plain) == b'{"success":true,"result":null}\x03'
    told = failure(errors.NotFound("No.", node="x"), plain)
    assert told == (
        b'{"success":false,"result":["OpPrereqError",["No.","unknown_entity"]],'
        b'"error":{"code":"not-found","message":"No.","detail":{"node":"x"}}}\x03'
    )
    assert b'"result":"What?"' in unreadable(errors.InvalidRequest("What?"))


@pytest.mark.parametrize(
    "text",
    [b"", b"x", b"[]", b'{"method": 1, "args": []}', b'{"method": "X"}', b"\xff", b"[" * 9999],
)
def test_garbage_is_no_request(text: bytes) -> None:
    with pytest.raises(errors.InvalidRequest, match="LUXI request"):
        read_request(text)
