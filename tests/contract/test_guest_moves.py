"""What every hypervisor promises of guests that move, kept by QEMU and by the fake."""

import asyncio

import pytest

from common.errors import Conflict, NodeFailure
from common.names import TaskId
from common.noderpc.instances import GuestState, Reception
from tests.support.hypervisors import (
    LONGER_THAN_A_COUNT_S,
    MOVE,
    NOBODY,
    WEB1,
    Rig,
    Run,
    goes_on,
    move,
    moving,
    receive,
    report_of,
    runner,
    send,
    state_of,
    until,
)

SLOW = {"migration_bandwidth": 1}  # a move takes 6 s and more
QUITE_SLOW = {"migration_bandwidth": 4}
ANOTHER = TaskId("another move")


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    return runner(request.param)


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
