"""A guest that does not answer its node goes on, or stands still, as it was told last."""

import asyncio
import functools

import pytest

from common.errors import NodeFailure
from common.noderpc.instances import GuestState
from noded.hypervisor.kvm import going_on, pulse
from tests.support.hypervisors import (
    WEB1,
    KvmRig,
    goes_on,
    move,
    run_kvm,
    state_of,
    until,
)


@pytest.mark.parametrize("is_new", [False, True], ids=["the same noded", "the next noded"])
def test_a_guest_that_is_silent_when_it_is_to_go_on_does_so_once_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_new: bool
) -> None:
    monkeypatch.setattr(pulse, "ORDER_S", 0.2)
    monkeypatch.setattr(going_on, "TELL_EVERY_S", 0.05)

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await rig.nodes["alpha"].stand_still(WEB1)
        rig.hang("alpha")
        if is_new:
            await rig.restart_noded("alpha")
            preparing = asyncio.get_running_loop().create_task(rig.nodes["alpha"].prepare())
            await until(functools.partial(tells_on, caplog))
            preparing.cancel()  # which may still find out whether KVM works
            await asyncio.wait([preparing])
        else:
            with pytest.raises(NodeFailure, match="does not answer, and stands still"):
                await rig.nodes["alpha"].go_on(WEB1)
        rig.wake("alpha")
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def tells_on(caplog: pytest.LogCaptureFixture) -> bool:
    """Tell whether a guest has not gone on when it was told to, and is told again."""
    return "still stands still" in caplog.text


async def told_to_go_on(rig: KvmRig, caplog: pytest.LogCaptureFixture) -> asyncio.Task[None]:
    """Have web1 on alpha answer again, whom a task that sleeps now is about to tell to go on."""
    alpha = rig.nodes["alpha"]
    rig.hang("alpha")
    with pytest.raises(NodeFailure):
        await alpha.go_on(WEB1)
    await until(functools.partial(tells_on, caplog))

    async def answers() -> bool:
        return await state_of(alpha) is not GuestState.UNKNOWN

    rig.wake("alpha")
    await until(answers)
    (task,) = (each for each in asyncio.all_tasks() if each.get_name() == f"have {WEB1} go on")
    return task


def test_a_guest_that_is_to_stand_still_anew_is_not_told_to_go_on_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "ORDER_S", 0.2)
    monkeypatch.setattr(going_on, "TELL_EVERY_S", 600.0)

    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await alpha.stand_still(WEB1)
        telling = await told_to_go_on(rig, caplog)
        await alpha.stand_still(WEB1)
        await asyncio.wait([telling])
        assert rig.home("alpha").stands_still
        await alpha.go_on(WEB1)
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_a_guest_that_leaves_is_not_told_to_go_on_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "ORDER_S", 0.2)
    monkeypatch.setattr(going_on, "TELL_EVERY_S", 600.0)

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        rig.home("alpha").stand_still()  # as when it hung before it was told to
        telling = await told_to_go_on(rig, caplog)
        await move(rig)
        await asyncio.wait([telling])
        assert telling.cancelled()

    run_kvm(scenario)
