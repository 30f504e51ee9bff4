"""What every hypervisor promises, kept by QEMU and by the fake."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from common.errors import Conflict, NotFound
from common.names import InstanceId, InstanceName, MiB
from common.noderpc.instances import GuestState, NoConsole
from noded.hypervisor.interface import Hypervisor
from tests.support.hypervisors import (
    MOVE,
    NOBODY,
    WEB1,
    Rig,
    Run,
    goes_on,
    receive,
    report_of,
    runner,
    send,
    state_of,
    until,
)

WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
PRESSED_S = 0.05  # by then the power button is pressed, and the guest most likely still there
LONGER_THAN_A_SHUTDOWN = 25  # a number that guests count to; they count 18 in a second


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    return runner(request.param)


def test_started_guest_runs_and_is_reported(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        (report,) = await rig.nodes["alpha"].guests()
        assert (report.id, report.name, report.state) == (WEB1, "web1", GuestState.RUNNING)
        assert (report.memory, report.vcpus, report.pinned["accelerator"]) == (8, 1, "tcg")
        assert report.cpu_seconds > 0
        assert await rig.nodes["beta"].guests() == ()

    run(scenario)


def test_running_guest_is_left_alone(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        before = await goes_on(rig, "alpha")
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        assert await goes_on(rig, "alpha") > before

    run(scenario)


def test_two_wishes_at_once_start_one_guest(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(rig.nodes["alpha"].ensure_running(rig.spec(), ()))
        assert len(await rig.nodes["alpha"].guests()) == 1
        await goes_on(rig, "alpha")

    run(scenario)


def test_guest_survives_noded_and_is_found_again(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        before = await goes_on(rig, "alpha")
        await rig.restart_noded("alpha")
        assert await goes_on(rig, "alpha") > before
        assert await state_of(rig.nodes["alpha"]) is GuestState.RUNNING
        await rig.nodes["alpha"].ensure_gone(WEB1)
        assert await rig.nodes["alpha"].guests() == ()

    run(scenario)


def test_gone_is_gone(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        for _ in range(2):
            await rig.nodes["alpha"].ensure_gone(WEB1)
            assert await rig.nodes["alpha"].guests() == ()

    run(scenario)


def test_power_button_ends_a_guest_early(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with asyncio.timeout(20):
            await rig.nodes["alpha"].shut_down(WEB1, wait_s=600)
        assert await rig.nodes["alpha"].guests() == ()

    run(scenario)


def test_shut_down_kills_when_time_is_up(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await rig.nodes["alpha"].shut_down(WEB1, wait_s=0)
        await rig.nodes["alpha"].shut_down(WEB1, wait_s=600)  # not there: nothing to wait for
        assert await rig.nodes["alpha"].guests() == ()

    run(scenario)


def test_guest_that_is_going_down_is_started_anew(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        with suppress(TimeoutError):
            async with asyncio.timeout(PRESSED_S):
                await alpha.shut_down(WEB1, wait_s=600)
        await alpha.ensure_running(rig.spec(), ())
        await until(lambda: rig.number("alpha") > LONGER_THAN_A_SHUTDOWN)
        assert await state_of(alpha) is GuestState.RUNNING

    run(scenario)


def test_reset_begins_anew(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await until(lambda: rig.number("alpha") > 6)
        await rig.nodes["alpha"].reset(WEB1)
        await until(lambda: rig.number("alpha") < 4)
        await goes_on(rig, "alpha")

    run(scenario)


def test_absent_guest_is_named_as_such(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        with pytest.raises(Conflict):
            await alpha.reset(WEB1)
        with pytest.raises(NotFound):
            await alpha.console(WEB1)
        with pytest.raises(Conflict):
            await alpha.ensure_not_migrating(WEB1)
        with pytest.raises(Conflict):
            await send(rig, NOBODY)
        with pytest.raises(Conflict):
            await alpha.ensure_resumed(WEB1, MOVE)
        await alpha.ensure_no_shell(WEB1)

    run(scenario)


def test_console_is_a_socket_or_a_reason(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        console = await rig.nodes["alpha"].console(WEB1)
        if isinstance(console, NoConsole):
            assert console.message
            return
        reader, writer = await asyncio.open_unix_connection(console)
        await reader.readline()  # of which we may see the end only
        assert len((await reader.readline()).strip()) == 8
        writer.close()

    run(scenario)


def test_guest_that_died_is_reported_and_can_be_started(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        rig.crash("alpha")

        async def is_stopped() -> bool:
            return await state_of(alpha) is GuestState.STOPPED

        await until(is_stopped)
        with pytest.raises(Conflict):
            await alpha.reset(WEB1)
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")

    run(scenario)


def test_guests_are_reported_by_name(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await alpha.ensure_running(
            rig.spec(id=WEB2, name=InstanceName("db1"), disks=(), vcpus=2), ()
        )
        assert [each.name for each in await alpha.guests()] == ["db1", "web1"]
        await alpha.ensure_gone(WEB1)
        assert [each.name for each in await alpha.guests()] == ["db1"]

    run(scenario)


def test_guest_that_hangs_is_unknown_and_waited_for_once(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        rig.hang("alpha")
        assert await state_of(alpha) is GuestState.UNKNOWN
        began = asyncio.get_running_loop().time()
        report = await report_of(alpha)
        assert report is not None
        assert (report.state, report.silent_s > 0) == (GuestState.UNKNOWN, True)
        assert asyncio.get_running_loop().time() - began < report.silent_s
        with pytest.raises(Conflict):
            await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(Conflict):
            await receive(rig, "alpha")
        with pytest.raises(Conflict):
            await alpha.ensure_no_shell(WEB1)
        with pytest.raises(Conflict):
            await send(rig, await receive(rig))
        rig.wake("alpha")

        async def is_running() -> bool:
            return await state_of(alpha) is GuestState.RUNNING

        await until(is_running)
        await goes_on(rig, "alpha")

    run(scenario)


def test_guest_that_hangs_can_be_ended(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        ends: tuple[Callable[[], Awaitable[None]], ...] = (
            lambda: alpha.ensure_gone(WEB1),
            lambda: alpha.shut_down(WEB1, wait_s=0.1),
        )
        for end in ends:
            await alpha.ensure_running(rig.spec(), ())
            rig.hang("alpha")
            await end()
            assert await alpha.guests() == ()

    run(scenario)


def test_disks_come_and_go_while_a_guest_runs(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, disks = rig.nodes["alpha"], [rig.disk(number) for number in range(4)]
        await alpha.ensure_running(rig.spec(disks=(disks[0], disks[1])), ())
        await goes_on(rig, "alpha")
        for wanted, slots in (
            ((disks[0], disks[1], disks[2]), (0, 1, 2)),
            ((disks[0], disks[2]), (0, 2)),
            ((disks[3], disks[0], disks[2]), (1, 0, 2)),
            ((disks[0], disks[1]), (0, 1)),
        ):
            for _ in range(2):
                await alpha.ensure_disks(rig.spec(disks=wanted))
                report = await report_of(alpha)
                assert report is not None
                assert report.disks == {
                    disk.id: slot for disk, slot in zip(wanted, slots, strict=True)
                }
                assert await rig.seen("alpha") == dict.fromkeys(sorted(slots), 1)
            await rig.restart_noded("alpha")
            alpha = rig.nodes["alpha"]
        await goes_on(rig, "alpha")

    run(scenario)


def test_disks_of_what_does_not_run_are_left_alone(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        both = rig.spec(disks=(rig.disk(0), rig.disk(1)))
        await alpha.ensure_disks(both)
        assert await alpha.guests() == ()
        await alpha.ensure_running(rig.spec(disks=(rig.disk(0),)), ())
        reception = await receive(rig, disks=(rig.disk(0),))
        with pytest.raises(Conflict, match="disks of web1 cannot be changed here"):
            await beta.ensure_disks(both)
        await send(rig, reception)
        with pytest.raises(Conflict, match="disks of web1 cannot be changed here"):
            await alpha.ensure_disks(both)

    run(scenario)


def test_a_guest_is_asked_to_use_less_memory_and_takes_that_along(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        with pytest.raises(Conflict, match="cannot be given other memory"):
            await alpha.set_memory(WEB1, MiB(6))
        await alpha.ensure_running(rig.spec(), ())
        assert (await _memory(alpha))[0] == 0
        for _ in range(2):
            await alpha.set_memory(WEB1, MiB(6))
        wanted, used = await _memory(alpha)
        assert wanted == 6
        assert 0 < used <= 8  # it has no driver that would give any back
        await send(rig, await receive(rig, wanted_memory=wanted))
        await beta.ensure_resumed(WEB1, MOVE)
        assert (await _memory(beta))[0] == 6
        with pytest.raises(Conflict, match="cannot be given other memory"):
            await alpha.set_memory(WEB1, MiB(8))

    run(scenario)


async def _memory(node: Hypervisor) -> tuple[MiB, MiB]:
    report = await report_of(node)
    assert report is not None
    return report.wanted_memory, report.used_memory
