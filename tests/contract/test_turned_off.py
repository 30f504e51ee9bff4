"""A guest that turns itself off is told from one that ends in another way."""

import signal
from collections.abc import Awaitable, Callable

import pytest

from common.noderpc.instances import GuestState
from noded.hypervisor.kvm.monitor import monitor
from tests.support.hypervisors import (
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    report_of,
    run_kvm,
    state_of,
    until,
)

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

End = Callable[[KvmRig], Awaitable[None]]


async def of_itself(rig: KvmRig) -> None:
    """Have it power off as if somebody in it had wanted that: noded knows nothing of it."""
    async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
        await session.ask("system_powerdown")


async def by_order(rig: KvmRig) -> None:
    rig.home("alpha").press_button()
    await of_itself(rig)


async def terminated(rig: KvmRig) -> None:
    rig.signal("alpha", signal.SIGTERM)


@pytest.mark.parametrize(
    ("end", "by_user"), [(of_itself, True), (by_order, False), (terminated, False)]
)
def test_a_guest_that_was_turned_off_from_within_is_told_from_others(
    end: End, by_user: bool
) -> None:
    async def scenario(rig: KvmRig) -> None:
        spec = rig.spec(parameters={"user_shutdown": True})
        await rig.nodes["alpha"].ensure_running(spec, ())
        await goes_on(rig, "alpha")
        found = await report_of(rig.nodes["alpha"])
        assert found
        assert not found.user_down
        await end(rig)

        async def has_ended() -> bool:
            return await state_of(rig.nodes["alpha"]) is GuestState.STOPPED

        await until(has_ended)
        await rig.restart_noded("alpha")
        found = await report_of(rig.nodes["alpha"])
        assert found
        assert found.user_down is by_user
        await rig.nodes["alpha"].ensure_running(spec, ())
        found = await report_of(rig.nodes["alpha"])
        assert found
        assert (found.id, found.user_down) == (WEB1, False)

    run_kvm(scenario)
