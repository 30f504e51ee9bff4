"""What every hypervisor promises of guests that go on before all of their memory has come."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from common.errors import Conflict, NodeFailure
from common.names import TaskId
from common.noderpc.instances import GuestState, Reception, Rest
from noded.hypervisor.kvm import launch, migration
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.home import Home
from tests.support.hypervisors import (
    ADDRESSES,
    MOVE,
    NOBODY,
    WEB1,
    KvmRig,
    Rig,
    Run,
    goes_on,
    has_qemu,
    receive,
    report_of,
    run_kvm,
    runner,
    send,
    state_of,
    until,
)
from tests.support.relay import relay
from tests.support.tiny_guest import numbers

ANOTHER = TaskId("another move")
ROOT = 0
SOME_BYTES = 100_000
LETS_ANYBODY = Path("/proc/sys/vm/unprivileged_userfaultfd")
SLOWLY = {"migration_caps": "postcopy-ram", "migration_bandwidth": 2}  # the rest takes seconds


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "kvm":
        request.getfixturevalue("by_post_copy")
    return runner(request.param)


@pytest.fixture
def by_post_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have guests switch in the first pass, since they change little afterwards.

    A kernel that lets nobody but root see to page faults has their QEMUs run as root.
    """
    if not has_qemu:
        pytest.skip("QEMU IS NOT INSTALLED: the driver for real guests was not tested")
    if not LETS_ANYBODY.exists():
        pytest.skip("this kernel has no userfaultfd: POST-COPY OF REAL GUESTS WAS NOT TESTED")
    if LETS_ANYBODY.read_text().strip() == "0":
        if os.geteuid() != ROOT:
            pytest.skip("only root may see to page faults: POST-COPY WAS NOT TESTED")
        monkeypatch.setattr(launch, "find_user", lambda *_: ROOT)
    monkeypatch.setattr(migration, "PASSES", 1)
    monkeypatch.setattr(Accelerators, "verdict", AsyncMock())  # which takes its time


def how(rig: Rig, **changes: Any) -> dict[str, Any]:
    return rig.spec().parameters | SLOWLY | changes


async def switch(rig: Rig) -> None:
    """Have web1 run on beta, with a part of its memory on alpha still."""
    await rig.nodes["alpha"].ensure_running(rig.spec(), ())
    await goes_on(rig, "alpha")
    await send(rig, await receive(rig, parameters=how(rig)), parameters=how(rig))
    await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)


async def rest_on(rig: Rig, node: str) -> Rest | None:
    report = await report_of(rig.nodes[node])
    return report.rest if report else None


async def both_are(rig: Rig, rest: Rest) -> None:
    async def are() -> bool:
        return [await rest_on(rig, node) for node in rig.nodes] == [rest, rest]

    await until(are)


async def mend(rig: Rig, reception: Reception) -> None:
    alpha, there = rig.nodes["alpha"], ADDRESSES["beta"]
    await alpha.send_rest(WEB1, host=there, reception=reception, move=MOVE)


def test_guest_goes_on_before_all_its_memory_has_come(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await send(rig, await receive(rig, parameters=how(rig)), parameters=how(rig))
        left = await report_of(alpha)
        assert left is not None
        assert (left.state, left.rest, left.move) == (GuestState.MIGRATED, Rest.COMES, MOVE)
        come = await report_of(beta)
        assert come is not None
        assert (come.state, come.arrived) == (GuestState.INCOMING, True)
        await beta.ensure_resumed(WEB1, MOVE)
        before = rig.number("alpha")
        with pytest.raises(Conflict, match="part of the memory"):
            await alpha.ensure_no_shell(WEB1)
        with pytest.raises(Conflict, match="part of the memory"):
            await receive(rig, "alpha", ANOTHER)
        with pytest.raises(Conflict, match="left"):
            await alpha.ensure_not_migrating(WEB1)
        assert await rest_on(rig, "beta") is Rest.COMES
        with pytest.raises(Conflict, match=r"(?i)not all"):
            await send(rig, NOBODY, source="beta", target="alpha", move=ANOTHER)
        await goes_on(rig, "beta")
        await both_are(rig, Rest.NONE)
        assert rig.number("alpha") == before
        await alpha.ensure_no_shell(WEB1)
        await goes_on(rig, "beta")
        with pytest.raises(Conflict):
            await beta.await_rest(WEB1, MOVE)

    run(scenario)


def test_rest_that_was_cut_goes_on_by_another_line_whoever_was_restarted(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await switch(rig)
        for node in ADDRESSES:
            await rig.restart_noded(node)
            await rig.nodes[node].prepare()
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        assert [await rest_on(rig, node) for node in ADDRESSES] == [Rest.COMES, Rest.COMES]
        with pytest.raises(Conflict):
            await beta.await_rest(WEB1, ANOTHER)
        reception = await beta.await_rest(WEB1, MOVE)
        await both_are(rig, Rest.CUT)
        assert await beta.await_rest(WEB1, MOVE) == reception
        there = ADDRESSES["beta"]
        with pytest.raises(Conflict):
            await alpha.send_rest(WEB1, host=there, reception=reception, move=ANOTHER)
        with pytest.raises(NodeFailure):
            await alpha.send_rest(WEB1, host=there, reception=NOBODY, move=MOVE)
        await alpha.send_rest(WEB1, host=there, reception=reception, move=MOVE)
        await both_are(rig, Rest.NONE)
        await alpha.ensure_no_shell(WEB1)
        await goes_on(rig, "beta")

    run(scenario)


def test_source_that_hangs_sends_nothing_and_one_that_dies_never_will(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await switch(rig)
        rig.hang("alpha")
        assert await rest_on(rig, "alpha") is Rest.CUT
        assert await state_of(alpha) is GuestState.MIGRATED
        with pytest.raises(Conflict, match="part of the memory"):
            await alpha.ensure_no_shell(WEB1)
        rig.crash("alpha")

        async def is_cut() -> bool:
            return await rest_on(rig, "beta") is Rest.CUT

        await until(is_cut)
        assert await rest_on(rig, "alpha") is Rest.NONE
        assert await state_of(alpha) is GuestState.MIGRATED
        await beta.ensure_gone(WEB1)

    run(scenario)


def test_lines_that_break_cost_the_guest_nothing(by_post_copy: None) -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig, parameters=how(rig))) as wire:
            await send(rig, wire.reception, parameters=how(rig))
            await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
            wire.cut()
            await both_are(rig, Rest.CUT)
        async with relay(await rig.nodes["beta"].await_rest(WEB1, MOVE)) as wire:
            await mend(rig, wire.reception)
            await until(lambda: len(wire.sent) > SOME_BYTES)
            wire.cut()
            await both_are(rig, Rest.CUT)
        await mend(rig, await rig.nodes["beta"].await_rest(WEB1, MOVE))
        await both_are(rig, Rest.NONE)
        await goes_on(rig, "beta")
        assert not rig.home("beta").tls.exists()
        consoles = [rig.home(node).serial_log.read_bytes() for node in ADDRESSES]
        told = numbers(b"".join(consoles))
        assert told == list(range(1, len(told) + 1))

    run_kvm(scenario)


@pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED")
def test_node_whose_kernel_has_no_post_copy_says_how_to_allow_it() -> None:
    if LETS_ANYBODY.exists() and LETS_ANYBODY.read_text().strip() != "0":
        pytest.skip("this kernel lets anybody see to page faults")

    async def scenario(rig: KvmRig) -> None:
        with pytest.raises(NodeFailure, match=r"vm\.unprivileged_userfaultfd=1.* QEMU said: Post"):
            await receive(rig, parameters=how(rig))
        assert await state_of(rig.nodes["beta"]) is None

    run_kvm(scenario)


def test_guest_whose_line_breaks_before_the_switch_stays(by_post_copy: None) -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig, parameters=how(rig))) as wire:
            wire.mute_after(1)
            task = asyncio.get_running_loop().create_task(
                send(rig, wire.reception, parameters=how(rig))
            )
            await until(lambda: len(wire.sent) > 40)
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="it goes on here"):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_guest_whose_noded_is_killed_at_the_switch_is_switched_by_the_next(
    by_post_copy: None, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        reception = await receive(rig, parameters=how(rig))
        with monkeypatch.context() as patch:
            patch.setattr(Home, "begin_post_copy", _dying_after(Home.begin_post_copy))
            with pytest.raises(NodeFailure, match="dies here"):
                await send(rig, reception, parameters=how(rig))
        await rig.restart_noded("alpha")
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        assert await state_of(alpha) is GuestState.RUNNING
        if is_cancelled:
            with pytest.raises(Conflict, match="has left"):
                await alpha.ensure_not_migrating(WEB1)
        else:
            await send(rig, reception, parameters=how(rig))
        assert await rest_on(rig, "alpha") is Rest.COMES
        await beta.ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

    run_kvm(scenario)


def test_guest_loses_nothing_by_a_full_disk_on_which_its_leaving_should_be_written(
    by_post_copy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Home) -> None:
        raise NodeFailure("No space left on device.")

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        reception = await receive(rig, parameters=how(rig))
        with monkeypatch.context() as patch:
            patch.setattr(Home, "mark_left", fails)
            with pytest.raises(NodeFailure, match="No space"):
                await send(rig, reception, parameters=how(rig))
        await send(rig, reception, parameters=how(rig))
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        assert await rest_on(rig, "beta") is Rest.COMES
        await both_are(rig, Rest.NONE)
        await goes_on(rig, "beta")

    run_kvm(scenario)


def _dying_after(step: Callable[[Home], None]) -> Callable[[Home], None]:
    def step_and_die(home: Home) -> None:
        step(home)
        raise NodeFailure("noded dies here")

    return step_and_die
