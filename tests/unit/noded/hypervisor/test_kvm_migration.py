"""Transfers of which QEMU tells how they end."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import uvloop

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from common.model.kvm_words import Accelerator
from common.names import InstanceName, MiB
from noded.hypervisor.kvm import migration, monitor
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.ways import Line, Manner
from tests.support.hypervisors import ADDRESSES, MOVE, NOBODY, WEB1, ignore
from tests.support.scripted_qemu import ScriptedQemu

LINE = Line(ADDRESSES["beta"], "beta", NOBODY)
RECORD = Record(
    id=WEB1, name=InstanceName("web1"), memory=MiB(1), vcpus=1, nics=(),
    accelerator=Accelerator.TCG,
)  # fmt: skip
SENDING = {"status": "active", "ram": {"dirty-sync-count": migration.PASSES}}
FAILED = {"status": "failed", "error-desc": "Broken pipe"}


def fails(caps: str, *states: dict[str, Any]) -> tuple[str, list[str]]:
    """Follow a transfer through these; return what is told of its failure, and what QEMU is."""
    manner = Manner(KvmParameters(migration_caps=caps), live=True)
    qemu = ScriptedQemu({"query-migrate": list(states), "query-status": {"status": "running"}})

    async def scenario(home: Home) -> None:
        home.directory.mkdir()
        home.begin_leaving(MOVE)
        async with qemu.at(home.qmp_socket, home.news_socket):
            with pytest.raises(NodeFailure) as failure:
                await migration.send(home, RECORD, MOVE, line=LINE, manner=manner, tell=ignore)
            told.append(str(failure.value))

    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Home(Path(directory), WEB1)))
    return told[0], qemu.told


def test_guest_that_fails_to_switch_has_its_disks_again_where_it_was() -> None:
    message, told = fails("postcopy-ram", SENDING, SENDING, SENDING, FAILED)
    assert told.index("cont") > told.index("migrate-start-postcopy")
    assert "it goes on here, with its disks again: Broken pipe" in message


def test_qemu_that_is_silent_for_longer_than_else_as_its_guest_leaves_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monitor, "ANSWER_S", 0.0)  # of any other question
    message, _ = fails("postcopy-ram", SENDING, SENDING, SENDING, FAILED)
    assert "it goes on here, with its disks again: Broken pipe" in message


def test_guest_whose_move_fails_before_any_switch_is_told_nothing() -> None:
    message, told = fails("", SENDING, FAILED)
    assert "cont" not in told
    assert "it goes on here: Broken pipe" in message
