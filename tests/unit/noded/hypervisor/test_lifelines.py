"""Lifelines of guests that lack memory, with a QEMU of which the main loop hangs."""

import tempfile
from functools import partial
from pathlib import Path

import pytest
import uvloop

from common.tasks import Background
from noded.hypervisor.kvm import lifelines
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.lifelines import SPARES, Lifelines
from tests.support.hypervisors import WEB1, until
from tests.support.scripted_qemu import ScriptedQemu


def test_lines_that_were_used_up_are_replaced_while_qemu_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifelines, "LOOK_EVERY_S", 0.2)
    monkeypatch.setattr(Home, "runs", True)

    async def scenario(home: Home) -> None:
        qemu, background = ScriptedQemu(), Background()
        home.directory.mkdir()
        home.lack_memory()
        async with qemu.at(home.qmp_socket, home.news_socket):
            lifeline = await Lifelines(background).hold(home, "web1")
            for times in (1, 2):
                qemu.hangs = True
                for _ in range(SPARES):
                    (await lifeline.mend()).close()
                qemu.hangs = False
                await until(partial(_was_given, qemu, (times + 1) * SPARES))
            await background.close()
        assert qemu.told.count("migrate-recover") == 2 * SPARES

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Home(Path(directory), WEB1)))


def _was_given(qemu: ScriptedQemu, lines: int) -> bool:
    return qemu.told.count("getfd") == lines
