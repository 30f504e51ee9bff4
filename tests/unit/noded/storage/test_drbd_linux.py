"""The module of a node: how many programs are run for it, and what is said when they fail."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import line
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.messages import (
    CONTEXT,
    NET,
    NO_MINOR,
    REPLY,
    Message,
    as_number,
    connection,
    ends,
    named,
    nest,
    pack_address,
    unpack_address,
    unpack_all,
    volume,
)
from noded.storage.drbd.module import Connection, Endpoint, InUse, ModuleState
from noded.storage.drbd.nine import netlink as nine
from noded.system.execute import CommandFailed, Finished

T = TypeVar("T")
SECRET = "5ec7e75ec7e75ec7e75ec7e75ec7e75e"
LINK = Connection("gantry-d", Endpoint("192.0.2.1", 11000), Endpoint("192.0.2.2", 11000))


class Programs:
    """Runs nothing, and remembers what."""

    def __init__(self, *failing: str, status: int = 10, stderr: str = "") -> None:
        self.ran: list[str] = []
        self._failing, self._status, self._stderr = failing, status, stderr

    async def __call__(self, *argv: str, timeout_s: float) -> Finished:
        self.ran.append(" ".join(argv))
        if any(word in argv for word in self._failing):
            raise CommandFailed("It failed.", status=self._status, stderr=self._stderr)
        return Finished(b"", b"")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


Module = Callable[..., LinuxDrbd]


@pytest.fixture
def eight(tmp_path: Path) -> Module:
    """Return what makes a module of 8.4 that programs are run for."""
    (module := tmp_path / "eight/sys/module/drbd").mkdir(parents=True)
    (module / "version").write_text("8.4.11\n")
    return partial(LinuxDrbd, root=tmp_path / "eight")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, bytes]]:
    """What connections the module was told to make."""
    made: list[dict[int, bytes]] = []

    def connect(_: Connection, options: dict[int, bytes]) -> None:
        made.append(options)

    monkeypatch.setattr(netlink, "connect", connect)
    return made


def test_a_device_takes_one_program_and_its_promotion_none(
    eight: Module, told: list[dict[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def activate(minor: int) -> None:
        await drbd.create("gantry-d", minor, 0)
        await drbd.attach(minor, "/dev/d", "/dev/m", MiB(64), DrbdParameters())
        await drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=False)
        await drbd.promote("gantry-d", minor, force=False)

        await drbd.remove("gantry-d")

    changes: list[tuple[object, ...]] = []
    monkeypatch.setattr(netlink, "create", lambda *what: changes.append(what))
    monkeypatch.setattr(netlink, "remove", lambda *what: changes.append(what))
    monkeypatch.setattr(netlink, "promote", lambda *what, force: changes.append((*what, force)))
    drbd = eight(programs := Programs())
    run(activate(7))
    words = [line.split()[:2] for line in programs.ran]
    assert words == [["drbdsetup", "attach"]]
    assert changes == [("gantry-d", 7), ("gantry-d", 7, False), ("gantry-d",)]
    assert len(told) == 1


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


@pytest.mark.parametrize("version", ["8.4.11", "9.2.16"])
def test_what_is_asked_of_one_device_needs_no_look_at_all_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    """The module writes about each of them for whoever reads its file in ``/proc``."""
    root = system(tmp_path, version=version)
    (root / "proc/drbd").unlink()
    programs = Programs()
    monkeypatch.setattr(netlink, "demote", lambda *_: programs.ran.append("asks secondary"))
    run(LinuxDrbd(programs, root=root).demote("gantry-d", 7))
    assert [line.split()[1] for line in programs.ran] == ["secondary"]


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


@pytest.mark.parametrize("version", ["8.4.11", "9.2.16"])
def test_volumes_that_may_hang_are_detached_by_a_program_which_can_be_killed(
    tmp_path: Path, version: str
) -> None:
    run(LinuxDrbd(programs := Programs(), root=system(tmp_path, version=version)).detach(7))
    assert programs.ran == ["drbdsetup detach 7"]


def test_secret_is_on_no_command_line(eight: Module, told: list[dict[int, bytes]]) -> None:
    drbd = eight(programs := Programs())
    run(
        drbd.connect(
            LINK, SECRET, DrbdParameters(net_custom="--ping-int=1"), discard=False, allow_two=False
        )
    )
    assert SECRET not in " ".join(programs.ran)
    assert told[0][1] == SECRET.encode() + b"\0"


def test_to_8_4_the_operators_options_are_told_with_the_peer(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    """Later, the module may be checking the peer's proof, with what it then takes away."""
    drbd = eight(programs := Programs())
    custom = "--ping-int=1 --max-buffers=8k --tcp-cork=no --use-rle --after-sb-1pri=consensus"
    parameters = DrbdParameters(net_custom=f"{custom} --verify-alg=md5 --protocol=A")
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert programs.ran == []
    rest = (1, 2, 24, 25, 34)
    assert {number: value for number, value in told[0].items() if number not in rest} == {
        9: as_number(1), 14: as_number(8192), 26: b"\0", 29: b"\1", 18: as_number(7),
        4: b"md5\0", 6: as_number(1),
    }  # fmt: skip


def test_8_4_gets_buffers_for_its_rate_and_finds_its_peer_sooner_than_a_ping_is_given_up(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    drbd = eight(Programs())
    run(drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=False))
    assert told[0][14] == as_number(6144)
    assert told[0][34] == as_number(2)


def test_the_operator_has_the_last_word_on_buffers_and_on_how_long_a_peer_is_watched(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    custom = "--max-buffers=2000 --socket-check-timeout=10"
    drbd = eight(programs := Programs())
    parameters = DrbdParameters(net_custom=custom)
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert (told[0][14], told[0][34]) == (as_number(2000), as_number(10))
    assert programs.ran == []


@pytest.mark.parametrize(
    "custom",
    [
        "--x=1",
        "--ping-int=a",
        "--ping-int",
        "--ping-int=0",
        "--sndbuf-size=11M",
        "--tcp-cork=maybe",
    ],
)
def test_an_option_that_is_not_understood_is_left_to_drbdsetup(
    eight: Module, told: list[dict[int, bytes]], custom: str
) -> None:
    drbd = eight(programs := Programs())
    parameters = DrbdParameters(net_custom=f"--ping-int=9 {custom}")
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert 9 not in told[0]
    assert [line.split()[-2:] for line in programs.ran] == [["--ping-int=9", custom]]


def test_to_9_the_operators_options_are_told_before_the_peer_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    async def program(*argv: str, timeout_s: float) -> Finished:
        assert timeout_s > 0
        order.append(argv[1])
        return Finished(b"", b"")

    monkeypatch.setattr(nine, "introduce", lambda *_: order.append("introduce"))
    monkeypatch.setattr(nine, "meet", lambda *_, discard: order.append(f"meet {discard}"))
    drbd = LinuxDrbd(program, root=system(tmp_path, version="9.2.16"))
    parameters = DrbdParameters(net_custom="--ping-int=1")
    run(drbd.connect(LINK, SECRET, parameters, discard=True, allow_two=False))
    assert order == ["introduce", "net-options", "meet True"]


@pytest.mark.parametrize("allowed", [False, True])
def test_whether_both_may_write_is_told_before_the_other_end_can_be_met(
    eight: Module, told: list[dict[int, bytes]], allowed: bool
) -> None:
    drbd = eight(programs := Programs())
    run(drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=allowed))
    assert (told[0][24], programs.ran) == (bytes([allowed]), [])


def test_kernel_without_digests_connects_without_proof(
    eight: Module, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[dict[int, bytes]] = []

    def connect(_: Connection, options: dict[int, bytes]) -> None:
        made.append(options)
        if 2 in options:
            raise line.DigestUnknown("This node's kernel has no HMAC for DRBD to use.")

    monkeypatch.setattr(netlink, "connect", connect)
    run(eight(Programs()).connect(LINK, SECRET, DrbdParameters(), discard=True, allow_two=False))
    assert [1 in options for options in made] == [True, False]
    assert [options[25] for options in made] == [b"\1", b"\1"]
    assert "does not prove who it is" in caplog.text
    assert SECRET not in caplog.text


def test_metadata_is_made_only_where_there_is_none(eight: Module, tmp_path: Path) -> None:
    (volume := tmp_path / "meta").write_bytes(bytes(8191) + b"\1")
    drbd = eight(programs := Programs())
    run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["create-md"]
    volume.write_bytes(bytes(4095) + b"\1")
    drbd = eight(programs := Programs())
    run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["get-gi"]
    drbd = eight(programs := Programs("get-gi", status=1))
    run(drbd.ensure_meta(3, str(volume)))
    known = ("get-gi", "create-md")
    words = [word for line in programs.ran for word in line.split() if word in known]
    assert words == ["get-gi", "get-gi", "create-md"]  # nor any of another version
    drbd = eight(programs := Programs("get-gi", status=20))
    with pytest.raises(CommandFailed):
        run(drbd.ensure_meta(3, str(volume)))
    assert [line.split()[-1] for line in programs.ran] == ["get-gi"]


def test_a_volume_that_cannot_be_read_gets_no_metadata(eight: Module, tmp_path: Path) -> None:
    drbd = eight(programs := Programs())
    with pytest.raises(NodeFailure, match="cannot be read"):
        run(drbd.ensure_meta(3, str(tmp_path / "gone")))
    assert programs.ran == []


def test_what_was_in_use_when_its_node_went_down_is_brought_up_to_date_first(eight: Module) -> None:
    async def refuses(*argv: str, timeout_s: float) -> Finished:
        ran.append(argv[1] if argv[0] == "drbdsetup" else argv[-1])
        if ran == ["attach"]:
            raise CommandFailed("No.", status=10, stderr="Unclean meta-data found: apply-al")
        return Finished(b"", b"")

    ran: list[str] = []
    run(eight(refuses).attach(7, "/dev/d", "/dev/m", MiB(64), DrbdParameters()))
    assert ran == ["attach", "apply-al", "attach"]


@pytest.mark.parametrize(
    ("version", "magic", "expected"),
    [
        ("8.4.11", 0x8374026C, ["apply-al", "attach"]),
        ("8.4.11", 0x8374026B, ["attach"]),
        ("9.2.16", 0x8374026C, ["attach"]),
    ],
)
def test_metadata_that_8_4_would_refuse_are_brought_up_to_date_before_they_are_attached(
    tmp_path: Path, version: str, magic: int, expected: list[str]
) -> None:
    meta = tmp_path / "meta"
    meta.write_bytes(bytes(60) + magic.to_bytes(4, "big") + bytes(4096))
    drbd = LinuxDrbd(programs := Programs(), root=system(tmp_path, version=version))
    run(drbd.attach(7, "/dev/d", str(meta), MiB(64), DrbdParameters()))
    known = ("apply-al", "attach")
    assert [word for line in programs.ran for word in line.split() if word in known] == expected


def test_volumes_that_cannot_be_attached_are_tried_once(eight: Module) -> None:
    drbd = eight(programs := Programs("attach", stderr="Low.dev. smaller than requested"))
    with pytest.raises(CommandFailed):
        run(drbd.attach(7, "/dev/d", "/dev/m", MiB(64), DrbdParameters()))
    assert len(programs.ran) == 1


def test_device_that_is_open_is_told_from_other_failures(
    eight: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    open_one = "0: State change failed: (-12) Device is held open by someone"
    root = system(tmp_path, version="9.2.16")
    with pytest.raises(InUse):
        run(LinuxDrbd(Programs("secondary", stderr=open_one), root=root).demote("gantry-d", 0))
    other = Programs("secondary", stderr="0: Failure: (127)")
    with pytest.raises(CommandFailed):
        run(LinuxDrbd(other, root=root).demote("gantry-d", 0))
    answers(monkeypatch, [Message(0, line.HELD_OPEN, {})])
    with pytest.raises(InUse):
        run(eight(Programs()).demote("gantry-d", 0))


Asked = list[tuple[int, int, bytes]]  # what, of which device, and the rest


def answers(monkeypatch: pytest.MonkeyPatch, *told: list[Message]) -> Asked:
    """Have the module say something to what it is asked, one after the other; return that."""
    left = list(told)
    asked: Asked = []

    class Scripted(line.Line):
        def __init__(self, _: int) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def _ask(self, command: int, minor: int, parts: bytes, _: int) -> list[Message]:
            asked.append((command, minor, parts))
            return left.pop(0)

    monkeypatch.setattr(netlink, "Line", Scripted)
    return asked


def system(
    root: Path, *, version: str = "8.4.11", helper: str = "/bin/true", most: int = 1
) -> Path:
    (root / "proc").mkdir()
    told = f"version: {version} (api:1/proto:86-101)\n 3: cs:Connected ro:Primary/Secondary\n"
    (root / "proc/drbd").write_text(told)
    settings = root / "sys/module/drbd/parameters"
    settings.mkdir(parents=True)
    (settings.parent / "version").write_text(f"{version}\n")
    (settings / "usermode_helper").write_text(f"{helper}\n")
    (settings / "minor_count").write_text(f"{most}\n")
    return root


def test_module_that_serves_is_not_complained_of(tmp_path: Path) -> None:
    assert run(LinuxDrbd(root=system(tmp_path)).state()) == ModuleState("8.4.11")


def test_what_is_wrong_with_the_module_is_told_with_what_to_do(tmp_path: Path) -> None:
    assert "modprobe drbd" in run(LinuxDrbd(root=tmp_path).state()).problem
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"version": "9.0.32-1"}, "version 9.0.32-1; needed is 8.4"),
        ({"helper": "/sbin/drbdadm"}, "runs /sbin/drbdadm when something happens"),
        ({"most": 0}, "has memory for 0 devices and has 1"),
    )
    for number, (change, words) in enumerate(changes):
        (root := tmp_path / str(number)).mkdir()
        state = run(LinuxDrbd(root=system(root, **change)).state())
        assert words in state.problem
        assert state.version == change.get("version", "8.4.11")
        assert state.helper == change.get("helper", "")


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
