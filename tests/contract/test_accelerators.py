"""What runs the processors of guests: KVM where it works, else QEMU itself."""

import asyncio
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.kvm_words import Accelerator
from noded.hypervisor.kvm import commands
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.boot_sector import boot_sector
from noded.hypervisor.kvm.driver import PROGRAM
from noded.system.execute import CommandFailed, execute
from tests.support.hypervisors import KvmRig, has_qemu, run_kvm

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: accelerators were not tested"
)


def test_program_that_tries_kvm_runs_to_its_end(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(boot_sector())

    async def scenario() -> None:
        with pytest.raises(CommandFailed) as caught:
            await execute(*commands.probe(PROGRAM, Accelerator.TCG, str(program)), timeout_s=20)
        assert caught.value.detail["status"] == commands.PROBE_PASSED

    asyncio.run(scenario())


def test_verdict_on_kvm_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        verdict = await Accelerators(tmp_path / "verdict").verdict(PROGRAM)
        assert bool(verdict.reason) != verdict.kvm
        monkeypatch.setattr(commands, "PROBE_CPU_S", 0)  # a second trial would fail
        assert await Accelerators(tmp_path / "verdict").verdict(PROGRAM) == verdict

    asyncio.run(scenario())


def test_machine_without_kvm_uses_tcg() -> None:
    async def scenario(rig: KvmRig) -> None:
        accelerators = Accelerators(rig.root / "verdict", device=rig.root / "no-kvm")
        assert not (await accelerators.verdict(PROGRAM)).kvm
        if (await Accelerators(rig.root / "verdict of here").verdict(PROGRAM)).kvm:
            pytest.skip("KVM works here: nothing to refuse")
        with pytest.raises(NodeFailure, match="wants KVM, which does not work here"):
            await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "kvm"}), ())
        await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "auto"}), ())
        (report,) = await rig.nodes["alpha"].guests()
        assert report.pinned["accelerator"] == "tcg"

    run_kvm(scenario)
