import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from common.names import KeyId
from coordinator.cli import console
from coordinator.cli.console import Console, Ending
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

TOLD = {"instance": "web1", "uuid": "u-1", "kind": "stream", "message": "", "host": "192.0.2.2",
        "port": 1811, "node": "beta", "key": "b1"}  # fmt: skip
BETA = Console("web1", "u-1", "192.0.2.2", 1811, "beta", KeyId("b1"))


class Message(NamedTuple):
    data: bytes | str


class Stream:
    """A console that writes ``pieces`` and then stays open, or not."""

    def __init__(self, *pieces: bytes | str, ends: bool = True) -> None:
        self.pieces, self.ends = pieces, ends
        self.typed: list[bytes] = []

    async def __aiter__(self) -> AsyncIterator[Message]:
        for piece in self.pieces:
            yield Message(piece)
        if not self.ends:
            await asyncio.Event().wait()

    async def send_bytes(self, data: bytes) -> None:
        self.typed.append(data)


def test_what_the_guest_writes_is_shown(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    ending = asyncio.run(console._carry(Stream(b"a\xff", "ü"), math.inf))
    assert ending is Ending.OVER_THERE
    assert capfdbinary.readouterr().out == b"a\xff\xc3\xbc"


@pytest.mark.parametrize("seconds", [0.01, 0, -3])
def test_the_time_is_kept(seconds: float) -> None:
    assert asyncio.run(console._carry(Stream(ends=False), seconds)) is Ending.TIME_IS_UP


def test_typing_goes_on_until_detached() -> None:
    async def scenario() -> tuple[Ending, list[bytes]]:
        stream, typed = Stream(), asyncio.Queue[bytes]()
        for data in (b"ls\n", b"q\x1dnever", b"sent"):
            typed.put_nowait(data)
        return await console._type(stream, typed), stream.typed

    assert asyncio.run(scenario()) == (Ending.DETACHED, [b"ls\n", b"q"])


def test_where_a_console_is(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=TOLD)
    assert console.find("web1") == BETA
    assert coordinator.submitted == [[{"OP_ID": "OP_INSTANCE_CONSOLE", "instance_name": "web1"}]]
    ran = run("gnt-instance console --show-cmd web1")
    assert ran.out == "https://192.0.2.2:1811/console/u-1 (node beta)\n"
    assert BETA._replace(host="2001:db8::2").url == "https://[2001:db8::2]:1811/console/u-1"


def test_why_there_is_no_console(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=TOLD | {"kind": "none", "message": "It has no serial port."})
    assert run("gnt-instance console web1") == (2, "", "Failure: It has no serial port.\n")
    failure = {"code": "conflict", "message": "Instance web1 is not running.", "detail": {}}
    coordinator.script_job(ends="error", failure=failure)
    assert run("gnt-instance console web1") == (4, "", "Failure: Instance web1 is not running.\n")


@pytest.mark.parametrize("lack", ["key", "uuid", "host", "port", "node"])
def test_a_coordinator_that_does_not_tell_all_is_of_another_version(
    run: Run, coordinator: ScriptedCoordinator, lack: str
) -> None:
    told = {name: value for name, value in TOLD.items() if name != lack}
    coordinator.script_job(result=told)
    ran = run("gnt-instance console web1")
    assert (ran.code, ran.out) == (2, "")
    assert f"does not tell the {lack} of web1's console" in ran.err
    assert "are both of the same version?" in ran.err


@pytest.mark.parametrize("told", [None, [], "stream", {}])
def test_what_is_no_console_is_told(
    run: Run, coordinator: ScriptedCoordinator, told: object
) -> None:
    coordinator.script_job(result=told)
    assert run("gnt-instance console web1").code == 2


def test_a_console_follows_its_instance(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    async def attach(where: Console, _: float) -> Ending:
        seen.append(where.node)
        coordinator.script_job(result=TOLD | {"node": "alpha"})
        return Ending.OVER_THERE if len(seen) == 1 else Ending.TIME_IS_UP

    coordinator.script_job(result=TOLD)
    monkeypatch.setattr(console, "attach", attach)
    assert run("gnt-instance console web1").code == 0
    assert seen == ["beta", "alpha"]


def test_a_console_ends_with_its_instance(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: dict[str, Any] = {"code": "conflict", "message": "Not running.", "detail": {}}

    async def attach(_: Console, __: float) -> Ending:
        coordinator.script_job(ends="error", failure=stopped)
        return Ending.OVER_THERE

    coordinator.script_job(result=TOLD)
    monkeypatch.setattr(console, "attach", attach)
    assert run("gnt-instance console web1").code == 0


def test_a_console_without_an_identity_is_refused(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=TOLD)
    ran = run("gnt-instance console web1")
    assert ran.code == 2
    assert "Cannot use the identity" in ran.err
