"""Guests that do nothing for a while: what every hypervisor promises, kept by QEMU and the fake."""

import asyncio

import pytest

from common.noderpc.instances import GuestState
from tests.support.hypervisors import (
    LONGER_THAN_A_COUNT_S,
    WEB1,
    Rig,
    Run,
    goes_on,
    report_of,
    runner,
    state_of,
)


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    return runner(request.param)


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


def test_a_guest_that_is_started_paused_does_nothing_until_it_is_told_to_run(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        for _ in range(2):  # it is left alone the second time
            await alpha.ensure_running(rig.spec(), (), paused=True)
            found = await report_of(alpha)
            assert found
            assert (found.state, found.held) == (GuestState.PAUSED, True)
        await rig.restart_noded("alpha")
        await asyncio.sleep(LONGER_THAN_A_COUNT_S)
        assert rig.number("alpha") == 0
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        found = await report_of(rig.nodes["alpha"])
        assert found
        assert (found.state, found.held) == (GuestState.RUNNING, False)

    run(scenario)


def test_a_guest_that_was_started_paused_is_released_and_others_are_left_alone(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.release(WEB1)
        await alpha.ensure_running(rig.spec(), (), paused=True)
        await alpha.release(WEB1)
        await goes_on(rig, "alpha")
        await alpha.stand_still(WEB1)
        await alpha.release(WEB1)
        assert await state_of(alpha) is GuestState.PAUSED
        await alpha.ensure_running(rig.spec(), (), paused=True)  # a running one goes on running
        await goes_on(rig, "alpha")

    run(scenario)


def test_a_guest_that_was_started_paused_ends_at_once(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), (), paused=True)
        await alpha.shut_down(WEB1, 1000.0)
        assert await alpha.guests() == ()

    run(scenario)
