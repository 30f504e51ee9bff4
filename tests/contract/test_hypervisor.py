"""What every hypervisor promises, kept by QEMU and by the fake."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from common.errors import Conflict, NodeFailure, NotFound
from common.names import InstanceId, InstanceName, MiB, TaskId
from common.noderpc.instances import GuestState, NoConsole, Reception
from noded.hypervisor.interface import Hypervisor
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    Rig,
    goes_on,
    has_qemu,
    move,
    moving,
    receive,
    report_of,
    run_fake,
    run_kvm,
    send,
    state_of,
    until,
)

WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
SLOW = {"migration_bandwidth": 1}  # a move takes 6 s and more
NOBODY = Reception(port=1, secret="00" * 32)  # nobody listens there
QUITE_SLOW = {"migration_bandwidth": 4}
ANOTHER = TaskId("another move")
LONGER_THAN_A_COUNT_S = 0.2
PRESSED_S = 0.05  # by then the power button is pressed, and the guest most likely still there
LONGER_THAN_A_SHUTDOWN = 25  # a number that guests count to; they count 18 in a second

Run = Callable[[Callable[[Rig], Awaitable[None]]], None]


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "kvm" and not has_qemu:
        pytest.skip("QEMU IS NOT INSTALLED: the driver for real guests was not tested")
    return {"fake": run_fake, "kvm": run_kvm}[request.param]  # type: ignore[return-value]


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


def test_moved_guest_goes_on_where_it_was(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        before = await goes_on(rig, "alpha")
        reception = await receive(rig)
        assert await state_of(beta) is GuestState.INCOMING
        shares: list[float | None] = []
        await send(rig, reception, tell=lambda _message, share: shares.append(share))
        assert await state_of(alpha) is GuestState.MIGRATED
        await beta.ensure_resumed(WEB1, MOVE)
        await until(lambda: rig.number("beta") > before)
        assert rig.number("alpha") <= rig.number("beta") <= rig.number("alpha") + 100
        assert all(share is None or 0 <= share <= 1 for share in shares)
        await alpha.ensure_no_shell(WEB1)
        await goes_on(rig, "beta")
        assert await state_of(beta) is GuestState.RUNNING

    run(scenario)


def test_guest_that_has_come_does_not_run_before_it_is_told_to(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        reception = await receive(rig)
        with pytest.raises(Conflict):  # nothing has come yet
            await beta.ensure_resumed(WEB1, MOVE)
        await send(rig, reception)
        for _ in range(2):
            report = await report_of(beta)
            assert report is not None
            assert (report.state, report.arrived, report.move) == (
                GuestState.INCOMING, True, MOVE,
            )  # fmt: skip
            await asyncio.sleep(LONGER_THAN_A_COUNT_S)
            assert rig.number("beta") in (0, rig.number("alpha"))
            await rig.restart_noded("beta")
        with pytest.raises(Conflict):  # it is another move that has ended
            await beta.ensure_resumed(WEB1, ANOTHER)
        with pytest.raises(Conflict):  # its memory would be lost
            await rig.nodes["beta"].ensure_receiving(rig.spec(), (), ANOTHER)
        for _ in range(2):
            await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

    run(scenario)


def test_shell_that_is_left_never_runs_again(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        reception = await receive(rig)
        await send(rig, reception)
        await send(rig, reception)  # it has been done
        await rig.restart_noded("alpha")
        alpha = rig.nodes["alpha"]
        with pytest.raises(Conflict):
            await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(Conflict):
            await alpha.reset(WEB1)
        with pytest.raises(Conflict):
            await alpha.ensure_not_migrating(WEB1)
        with pytest.raises(Conflict):
            await alpha.ensure_resumed(WEB1, MOVE)
        with pytest.raises(Conflict, match="another move"):
            await send(rig, reception, move=ANOTHER)
        rig.hang("alpha")
        report = await report_of(alpha)
        assert report is not None
        assert (report.state, report.move) == (GuestState.MIGRATED, MOVE)

    run(scenario)


def test_guest_moves_there_and_back(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        before = await goes_on(rig, "alpha")
        await move(rig)
        # What is received takes the place of the shell.
        await move(rig, source="beta", target="alpha", move=ANOTHER)
        await until(lambda: rig.number("alpha") > before)
        assert await state_of(beta) is GuestState.MIGRATED
        with pytest.raises(Conflict):
            await beta.ensure_resumed(WEB1, MOVE)
        await alpha.ensure_resumed(WEB1, ANOTHER)

    run(scenario)


def test_shell_waits_for_one_move(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        reception = await receive(rig)
        assert await receive(rig) == reception
        with pytest.raises(Conflict):
            await beta.ensure_running(rig.spec(), ())
        with pytest.raises(Conflict):
            await beta.ensure_not_migrating(WEB1)
        await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(Conflict):
            await receive(rig, "alpha")
        with pytest.raises(Conflict):
            await alpha.ensure_no_shell(WEB1)
        assert await receive(rig, move=ANOTHER) != reception
        with pytest.raises(NodeFailure, match="web1"):
            await send(rig, reception)
        await goes_on(rig, "alpha")
        await beta.ensure_no_shell(WEB1)
        assert await beta.guests() == ()

    run(scenario)


def test_target_whose_noded_was_restarted_still_receives(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await receive(rig)
        await rig.restart_noded("beta")
        await move(rig)
        await goes_on(rig, "beta")

    run(scenario)


def test_move_to_nobody_fails_and_the_guest_goes_on(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(NodeFailure, match="web1"):
            await send(rig, NOBODY)
        await goes_on(rig, "alpha")
        await alpha.ensure_not_migrating(WEB1)
        await move(rig)
        await goes_on(rig, "beta")

    run(scenario)


def test_only_who_knows_the_secret_can_send(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        reception = await receive(rig)
        with pytest.raises(NodeFailure, match="web1"):
            await send(rig, Reception(port=reception.port, secret="00" * 32))
        await send(rig, reception)
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

    run(scenario)


def test_guest_that_is_to_stand_still_does_so_until_it_has_come(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with moving(rig, await receive(rig), parameters=QUITE_SLOW, live=False) as task:
            before = rig.number("alpha")
            await task
        assert rig.number("alpha") <= before + 1, "it has run on"
        assert await state_of(alpha) is GuestState.MIGRATED
        await beta.ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        assert await state_of(beta) is GuestState.RUNNING

    run(scenario)


def test_guest_that_stood_still_goes_on_where_it_was_if_it_does_not_leave(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with moving(rig, await receive(rig), parameters=SLOW, live=False) as task:
            await alpha.ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="cancelled"):
                await task
        await goes_on(rig, "alpha")
        assert await state_of(alpha) is GuestState.RUNNING

    run(scenario)


def test_cancelled_move_leaves_the_guest(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters=SLOW) as task:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await goes_on(rig, "alpha")
        await beta.ensure_no_shell(WEB1)
        assert await state_of(alpha) is GuestState.RUNNING

    run(scenario)


def test_move_can_be_ended_by_another_call(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters=SLOW) as task:
            await alpha.ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="cancelled"):
                await task
        await goes_on(rig, "alpha")

    run(scenario)


def test_target_that_dies_leaves_the_guest(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters=SLOW) as task:
            rig.crash("beta")
            with pytest.raises(NodeFailure, match="web1"):
                await task
        await goes_on(rig, "alpha")

    run(scenario)


def test_target_that_hangs_leaves_the_guest(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters=SLOW) as task:
            rig.hang("beta")
            assert await state_of(beta) is GuestState.INCOMING
            await alpha.ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="cancelled"):
                await task
        await goes_on(rig, "alpha")
        await beta.ensure_no_shell(WEB1)
        assert await beta.guests() == ()

    run(scenario)


def test_move_under_way_is_joined(run: Run) -> None:
    """As when the coordinator repeats its wish: there is one transfer, and both calls see it."""

    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        reception = await receive(rig)
        async with moving(rig, reception, parameters=QUITE_SLOW) as task:
            with pytest.raises(Conflict, match="another"):
                await send(rig, reception, parameters=QUITE_SLOW, move=ANOTHER)
            await send(rig, reception, parameters=QUITE_SLOW)
            await task
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

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


def test_guest_moves_with_its_disks_where_they_are(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, disks = rig.nodes["alpha"], [rig.disk(number) for number in range(3)]
        await alpha.ensure_running(rig.spec(disks=tuple(disks)), ())
        kept = rig.spec(disks=(disks[0], disks[2]))
        await alpha.ensure_disks(kept)
        report = await report_of(alpha)
        assert report is not None
        assert report.disks is not None
        await send(rig, await receive(rig, disks=kept.disks, slots=report.disks))
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        assert await rig.seen("beta") == {0: 1, 2: 1}
        await rig.nodes["beta"].ensure_disks(rig.spec(disks=(disks[0],)))
        assert await rig.seen("beta") == {0: 1}

    run(scenario)


def test_target_that_lacks_a_disk_gets_no_guest(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, disks = rig.nodes["alpha"], [rig.disk(number) for number in range(2)]
        await alpha.ensure_running(rig.spec(disks=tuple(disks)), ())
        with pytest.raises(NodeFailure, match="Moving web1 to beta failed"):
            await send(rig, await receive(rig, disks=(disks[0],)))
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


def test_a_guest_stands_still_until_it_is_told_to_go_on(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        for _ in range(2):
            await alpha.stand_still(WEB1)
        assert await state_of(alpha) is GuestState.PAUSED
        before = rig.number("alpha")
        await asyncio.sleep(LONGER_THAN_A_COUNT_S)
        assert rig.number("alpha") == before
        for _ in range(2):
            await alpha.go_on(WEB1)
        assert await goes_on(rig, "alpha") > before

    run(scenario)


def test_who_does_not_run_need_not_stand_still(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].stand_still(WEB1)
        await rig.nodes["alpha"].go_on(WEB1)
        assert await rig.nodes["alpha"].guests() == ()

    run(scenario)


@pytest.mark.parametrize("how", ["prepare", "start"])
def test_a_guest_that_was_left_standing_goes_on(run: Run, how: str) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await rig.nodes["alpha"].stand_still(WEB1)
        await rig.restart_noded("alpha")
        if how == "prepare":
            await rig.nodes["alpha"].prepare()
        else:
            await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")

    run(scenario)
