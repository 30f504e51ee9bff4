"""Lifelines of guests that lack memory, with a QEMU of which the main loop hangs."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
import uvloop

from common.tasks import Background
from noded.hypervisor.interface import Surroundings
from noded.hypervisor.kvm import lifelines, monitor, moves
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.driver import KvmHypervisor
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.lifelines import SPARES, Lifeline, Lifelines
from tests.support.hypervisors import ADDRESSES, WEB1, until
from tests.support.scripted_qemu import ScriptedQemu

TRIES = 5


@asynccontextmanager
async def held() -> AsyncIterator[tuple[ScriptedQemu, Lifeline]]:
    """Hold the lifeline of a guest that lacks memory and never ends."""
    qemu, background = ScriptedQemu(), Background()
    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        home = Home(Path(directory), WEB1)
        home.directory.mkdir()
        home.lack_memory()
        async with qemu.at(home.qmp_socket, home.news_socket):
            yield qemu, await Lifelines(background).hold(home, "web1")
            await background.close()


def test_lines_that_were_used_up_are_replaced_while_qemu_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifelines, "LOOK_EVERY_S", 0.2)
    monkeypatch.setattr(Home, "runs", True)

    async def scenario() -> None:
        async with held() as (qemu, lifeline):
            for times in (1, 2):
                qemu.hangs = True
                for _ in range(SPARES):
                    (await lifeline.mend()).close()
                qemu.hangs = False
                await until(partial(_was_given, qemu, (times + 1) * SPARES))
        assert qemu.told.count("migrate-recover") == 2 * SPARES

    uvloop.run(scenario())


def test_qemu_that_waits_for_memory_is_told_nothing_that_would_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifelines, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(Home, "runs", True)

    async def scenario() -> None:
        async with held() as (qemu, lifeline):
            qemu.hangs = True
            (await lifeline.mend()).close()
            await until(lambda: qemu.sessions > TRIES)
        assert set(qemu.unheard) == {"qmp_capabilities"}  # each ends with its session

    uvloop.run(scenario())


def test_guest_that_was_silent_when_its_noded_came_back_has_a_lifeline_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monitor, "ANSWER_S", 0.3)
    monkeypatch.setattr(moves, "HOLD_AGAIN_S", 0.1)
    monkeypatch.setattr(Home, "runs", True)
    monkeypatch.setattr(Accelerators, "verdict", AsyncMock())

    async def scenario(root: Path) -> None:
        home = Home(root / "run", WEB1)
        home.directory.mkdir(parents=True)
        home.lack_memory()
        qemu, noded = ScriptedQemu(), _noded(root)
        async with qemu.at(home.news_socket):
            qemu.hangs = True
            await noded.prepare()
            await until(lambda: qemu.sessions > 1)  # it tried, and does again
            qemu.hangs = False
            await until(partial(_was_given, qemu, SPARES))
            await noded.close()

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Path(directory)))


def _noded(root: Path) -> KvmHypervisor:
    return KvmHypervisor(
        Surroundings(
            instances=root / "run",
            identity=root,
            address=ADDRESSES["alpha"],
            rules=root / "rules",
            ifup=root / "kvm-ifup-custom",
            open_disk=Mock(),
        )
    )


def _was_given(qemu: ScriptedQemu, lines: int) -> bool:
    return qemu.told.count("getfd") >= lines  # what is not heard in time is given once more
