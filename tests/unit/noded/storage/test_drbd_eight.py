"""What the module of DRBD 8.4 is asked without a program, and what is made of its answers."""

import pytest

from common.errors import NodeFailure
from noded.storage.drbd import line
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.messages import (
    CONTEXT,
    NET,
    NO_MINOR,
    REPLY,
    Message,
    connection,
    ends,
    named,
    nest,
    pack_address,
    unpack_address,
    unpack_all,
    volume,
)
from noded.storage.drbd.module import Connection, Endpoint, InUse
from tests.unit.noded.storage.drbd_module import LINK, Module, Programs, answers, run


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (line.NO_ERROR, None), (1, None), (line.NO_SUCH_RESOURCE, None),
        (line.HELD_OPEN, InUse), (127, NodeFailure), (0, NodeFailure),
    ],
)  # fmt: skip
def test_what_the_module_answers_to_a_removal_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, code: int, error: type[NodeFailure] | None
) -> None:
    answer = Message(0, code, {REPLY: {1: b"not now\0"}})
    answers(monkeypatch, [answer])
    if error is None:
        netlink.remove("gantry-d")
        return
    with pytest.raises(error) as refused:
        netlink.remove("gantry-d")
    assert type(refused.value) is error
    assert "gantry-d" in refused.value.message


def test_a_device_that_the_module_does_not_make_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Message(7, line.NO_ERROR, {}), Message(7, 130, {REPLY: {1: b"no room\0"}})
    answers(monkeypatch, *([each] for each in said))
    with pytest.raises(NodeFailure, match=r"make device 7 for gantry-d: error 130 no room\."):
        netlink.create("gantry-d", 7)


def test_what_is_changed_of_8_4_takes_no_program_and_names_whom_it_is_about(
    eight: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that has become another resource's by then is not promoted."""
    asked = answers(monkeypatch, *([Message(7, line.NO_ERROR, {})] for _ in range(6)))

    async def story() -> None:
        await drbd.promote("gantry-d", 7, force=True)
        await drbd.promote("gantry-d", 7, force=False)
        await drbd.demote("gantry-d", 7)
        await drbd.declare_equal(7)
        await drbd.allow_two(LINK, allowed=True)
        await drbd.disconnect(LINK)

    drbd = eight(programs := Programs())
    run(story())
    assert programs.ran == []
    named_so, linked = volume("gantry-d"), ends(LINK)
    assert asked == [
        (14, 7, named_so + nest(6, {1: b"\1"})),
        (14, 7, named_so + nest(6, {1: b"\0"})),
        (15, 7, named_so + nest(6, {1: b"\0"})),
        (16, 7, nest(10, {1: b"\1"})),
        (29, NO_MINOR, linked + nest(NET, {24: b"\1"})),
        (11, NO_MINOR, linked),
    ]


def test_a_state_that_is_not_changed_to_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, [Message(7, -2, {})])
    with pytest.raises(
        NodeFailure, match=r"make gantry-d primary: error -2 Need access to UpToDate"
    ):
        netlink.promote("gantry-d", 7, force=False)


@pytest.mark.parametrize("busy", line.NOT_NOW)
def test_a_module_that_is_just_changing_something_is_asked_again(
    busy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "PAUSES_S", (0.0, 0.0))
    asked = answers(
        monkeypatch, [Message(7, busy, {})], [Message(7, busy, {})], [Message(7, 1, {})]
    )
    netlink.demote("gantry-d", 7)
    assert len(asked) == 3
    answers(monkeypatch, *([Message(7, busy, {})] for _ in range(3)))
    with pytest.raises(NodeFailure, match=f"make gantry-d secondary: error {busy} "):
        netlink.demote("gantry-d", 7)


def test_a_change_that_nothing_is_said_of_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, [])
    with pytest.raises(NodeFailure, match="asked to make gantry-d secondary, and has not said"):
        netlink.demote("gantry-d", 7)


def test_a_module_that_does_not_answer_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute:
        def __init__(self, *_: object) -> None:
            self.settimeout = self.bind = self.send = lambda _: None

        def recv(self, _: int) -> bytes:
            raise TimeoutError("timed out")

    monkeypatch.setattr("socket.socket", Mute)
    with pytest.raises(NodeFailure, match="module has not answered: timed out"):
        netlink.promote("gantry-d", 7, force=False)


def test_what_the_module_is_sent_can_be_read_again() -> None:
    link = Connection("gantry-d", LINK.own, Endpoint("::1", 11001))
    sent = dict(unpack_all(connection(link, {1: b"x"})))
    context = dict(unpack_all(sent[2]))
    assert context[2] == b"gantry-d\0"
    assert unpack_address(context[3]) == ("192.0.2.1", 11000)
    assert unpack_address(context[4]) == ("::1", 11001)
    assert dict(unpack_all(sent[NET])) == {1: b"x"}
    assert dict(unpack_all(dict(unpack_all(named("gantry-d")))[CONTEXT])) == {2: b"gantry-d\0"}
    context = dict(unpack_all(dict(unpack_all(volume("gantry-d")))[CONTEXT]))
    assert context == {1: bytes(4), 2: b"gantry-d\0"}
    assert dict(unpack_all(dict(unpack_all(ends(link)))[CONTEXT])).keys() == {3, 4}
    assert len(pack_address("192.0.2.1", 1)) == 16
    assert len(pack_address("::1", 1)) == 28
