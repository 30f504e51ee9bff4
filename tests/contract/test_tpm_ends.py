"""A guest's TPM ends with its guest, and none of another start is left beside it."""

import contextlib
import os
import signal
from collections.abc import Iterator

from common.model.kvm_words import Accelerator
from noded.hypervisor.kvm import tpm
from noded.hypervisor.kvm.home import Record
from noded.system.process import Process, start
from tests.support.hypervisors import WEB1, KvmRig, goes_on, run_kvm, until
from tests.support.tpms import NEEDED, emulator, has_none, loops, trusted

pytestmark = NEEDED

USER = 70_000  # of a guest


def left_alone(rig: KvmRig) -> Process:
    """Start a TPM as noded does, which is killed then: it has no QEMU, and no line to one."""
    home, guest = rig.home("alpha"), trusted(rig)
    record = Record(
        id=guest.id, name=guest.name, memory=guest.memory, vcpus=guest.vcpus, nics=(),
        accelerator=Accelerator.TCG, user=USER,
    )  # fmt: skip
    home.prepare(record)
    with contextlib.ExitStack() as ours:

        def keep(descriptor: int) -> int:
            ours.callback(os.close, descriptor)
            return descriptor

        made = tpm.prepare(home, record, guest.disks[1], rig.opening["alpha"], keep)
        return start(made.command, home.tpm_log, made.handed)


@contextlib.contextmanager
def not_beyond_the_test(process: Process) -> Iterator[Process]:
    with process:
        try:
            yield process
        finally:
            process.signal(signal.SIGKILL)


def test_a_tpm_ends_with_its_guest_however_that_ends() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        assert not has_none(rig)
        await rig.restart_noded("alpha")  # nobody waits for either
        rig.crash("alpha")
        await until(lambda: has_none(rig))
        await until(lambda: not list(loops(rig)))

    run_kvm(scenario)


def test_a_tpm_that_hangs_is_gone_with_its_guest_all_the_same() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        found = emulator(rig)
        assert found is not None
        with found:
            found.signal(signal.SIGSTOP)
            await rig.nodes["alpha"].ensure_gone(WEB1)
            assert found.has_ended

    run_kvm(scenario)


def test_a_guest_that_starts_again_has_one_tpm_though_the_last_one_hangs() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(trusted(rig), ())
        await goes_on(rig, "alpha")
        old = emulator(rig)
        assert old is not None
        with not_beyond_the_test(old):
            old.signal(signal.SIGSTOP)
            rig.crash("alpha")
            await rig.nodes["alpha"].ensure_running(trusted(rig), ())
            assert old.has_ended
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_a_tpm_of_a_start_that_noded_did_not_outlive_is_gone_at_the_next_start() -> None:
    async def scenario(rig: KvmRig) -> None:
        home = rig.home("alpha")
        with not_beyond_the_test(left_alone(rig)) as old:
            assert not home.tpm_pid.exists()  # so nobody has written down which it is
            await rig.nodes["alpha"].ensure_running(trusted(rig), ())
            assert old.has_ended
        await goes_on(rig, "alpha")
        assert not has_none(rig)

    run_kvm(scenario)
