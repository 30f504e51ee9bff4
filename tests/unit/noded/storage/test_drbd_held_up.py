"""A module of DRBD's that never answers: what waits for it, and what does not."""

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.daemon.serve import MOST_THREADS
from noded.storage.drbd import linux
from noded.storage.drbd.eight import netlink, superblock
from noded.storage.drbd.linux import LinuxDrbd
from noded.system.execute import Finished
from noded.system.threads import in_thread

LONGEST_S = 10.0  # until it answers after all, for a test that would hang


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until this is set, the module answers nothing that it is asked."""
    monkeypatch.setattr(linux, "CHANGE_S", 0.05)
    monkeypatch.setattr(linux, "LOOK_S", 0.05)
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def drbd(tmp_path: Path, answers: threading.Event) -> LinuxDrbd:
    (module := tmp_path / "sys/module/drbd").mkdir(parents=True)
    (module / "version").write_text("8.4.11\n")
    return LinuxDrbd(root=tmp_path)


async def end_of(doing: Awaitable[object]) -> str:
    """Return what is refused, and why; nothing if it is done."""
    try:
        await doing
    except NodeFailure as error:
        return error.message
    return ""


def test_changes_that_are_never_answered_hold_up_nothing_else(
    drbd: LinuxDrbd, answers: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netlink, "demote", lambda *_: answers.wait())
    monkeypatch.setattr(netlink, "devices", tuple)
    ends: list[str] = []

    async def change(minor: int) -> None:
        ends.append(await end_of(drbd.demote("gantry-d", minor)))
        if len(ends) == refused:
            assert await in_thread(lambda: "a grant is kept") == "a grant is kept"
            assert await drbd.look() == ()
            answers.set()

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(LONGEST_S, answers.set)
        async with asyncio.TaskGroup() as group:
            for minor in range(asked):
                group.create_task(change(minor))
        await drbd.demote("gantry-d", 0)

    asked = 20
    assert asked > MOST_THREADS
    refused = asked - linux.MOST_CHANGES
    asyncio.run(scenario())
    assert all("4 changes wait for it already" in end for end in ends[:refused])
    assert ends[refused:] == [""] * linux.MOST_CHANGES


def test_looks_that_are_never_answered_hold_up_no_change(
    drbd: LinuxDrbd, answers: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netlink, "devices", lambda: (answers.wait(), ())[1])
    monkeypatch.setattr(netlink, "demote", lambda *_: None)
    ends: list[str] = []

    async def look() -> None:
        ends.append(await end_of(drbd.look()))
        if len(ends) == 1:
            await drbd.demote("gantry-d", 0)
            answers.set()

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(LONGEST_S, answers.set)
        async with asyncio.TaskGroup() as group:
            for _ in range(linux.MOST_LOOKS + 1):
                group.create_task(look())

    asyncio.run(scenario())
    assert "2 looks wait for it already" in ends[0]
    assert ends[1:] == [""] * linux.MOST_LOOKS


@pytest.mark.parametrize("asks", ["attach", "ensure_meta"])
def test_metadata_on_a_disk_that_hangs_hold_up_nothing_else(
    drbd: LinuxDrbd, answers: threading.Event, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    monkeypatch.setattr(superblock, "is_unclean", lambda _: answers.wait())
    monkeypatch.setattr(linux, "_is_blank", lambda _: answers.wait())
    ends: list[str] = []

    async def prepare(minor: int) -> None:
        if asks == "attach":
            doing = drbd.attach(minor, "/dev/d", "/dev/m", MiB(64), DrbdParameters())
        else:
            doing = drbd.ensure_meta(minor, "/dev/m")
        ends.append(await end_of(doing))
        if len(ends) == MOST_THREADS:
            assert await in_thread(lambda: "a grant is kept") == "a grant is kept"
            assert not answers.is_set()
            answers.set()

    async def done(*_: str, timeout_s: float) -> Finished:
        return Finished(b"", b"")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(MOST_THREADS))
        loop.call_later(LONGEST_S, answers.set)
        async with asyncio.TaskGroup() as group:
            for minor in range(MOST_THREADS + linux.MOST_CHANGES):
                group.create_task(prepare(minor))

    monkeypatch.setattr(drbd, "_run", done)
    asyncio.run(scenario())
    assert all("4 changes wait for it already" in end for end in ends[:MOST_THREADS])
    assert ends[MOST_THREADS:] == [""] * linux.MOST_CHANGES
