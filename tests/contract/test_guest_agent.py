"""What agents in guests are good for: addresses, frozen file systems, and going down in order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.names import MiB, NicId
from common.noderpc.guest_agent import Interface
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec
from noded.hypervisor.interface import Hypervisor
from noded.hypervisor.kvm import agent_line, agents
from tests.support.guest_agent import PretendedAgent
from tests.support.hypervisors import (
    WEB1,
    FakeRig,
    KvmRig,
    Rig,
    goes_on,
    has_qemu,
    receive,
    report_of,
    run_fake,
    run_kvm,
    send,
    until,
)

NIC = NicSpec(
    id=NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a"), instance=WEB1, mac="aa:00:00:00:00:01",
    mode="bridged", link="br0",
)  # fmt: skip
TOLD = (Interface(name="eth0", mac="aa:00:00:00:00:01", addresses=("192.0.2.1",)),)


class Inside(Protocol):
    """What is in a guest on alpha that has an agent."""

    @property
    def is_frozen(self) -> bool: ...

    def deafen(self) -> None: ...

    def hear(self) -> None: ...


class _Fake:
    def __init__(self, rig: FakeRig) -> None:
        self._machine = rig.machines["alpha"]

    @property
    def is_frozen(self) -> bool:
        return self._machine.is_frozen(WEB1)

    def deafen(self) -> None:
        self._machine.deafen(WEB1)

    def hear(self) -> None:
        self._machine.deafen(WEB1, deaf=False)


class _Pretended(PretendedAgent):
    def deafen(self) -> None:
        self.is_deaf = True

    def hear(self) -> None:
        self.is_deaf = False


@contextlib.asynccontextmanager
async def agent_in(rig: Rig) -> AsyncIterator[Inside]:
    """Have web1 on alpha have an agent."""
    if isinstance(rig, KvmRig):
        pretended = _Pretended()
        async with pretended.at(rig.home("alpha").agent_socket):
            yield pretended
    else:
        assert isinstance(rig, FakeRig)
        yield _Fake(rig)


def with_line(rig: Rig) -> GuestSpec:
    """Describe web1 with a line to an agent; with a nic, where that needs no network."""
    spec = rig.spec()
    nics = () if isinstance(rig, KvmRig) else (NIC,)
    return replace(spec, parameters=spec.parameters | {"use_guest_agent": True}, nics=nics)


async def start(rig: Rig, **changes: Any) -> Hypervisor:
    spec = replace(with_line(rig), **changes)
    await rig.nodes["alpha"].ensure_running(spec, tuple("tap" for _ in spec.nics))
    return rig.nodes["alpha"]


Run = Callable[[Callable[[Rig], Awaitable[None]]], None]


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    if request.param == "fake":
        return run_fake
    if not has_qemu:
        pytest.skip("QEMU IS NOT INSTALLED: the driver for real guests was not tested")
    monkeypatch.setattr(agent_line, "ANSWER_S", 0.3)
    monkeypatch.setattr(agents, "THAW_EVERY_S", 0.05)
    monkeypatch.setattr(agents, "THAW_S", 0.2)
    return run_kvm


def test_a_guest_tells_its_addresses_and_is_frozen_until_it_is_thawed(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig)
        async with agent_in(rig) as inside:
            found = await report_of(alpha)
            assert found
            assert found.interfaces == TOLD
            assert await alpha.freeze(WEB1) > 0
            assert inside.is_frozen
            await alpha.thaw(WEB1)
            await alpha.thaw(WEB1)
            assert not inside.is_frozen

    run(scenario)


def test_a_guest_that_was_frozen_is_thawed_when_noded_comes_back(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig)
        async with agent_in(rig) as inside:
            await alpha.freeze(WEB1)
            await rig.restart_noded("alpha")
            preparing = asyncio.get_running_loop().create_task(rig.nodes["alpha"].prepare())
            await until(lambda: not inside.is_frozen)
            preparing.cancel()  # which may still find out whether KVM works
            await asyncio.wait([preparing])

    run(scenario)


def test_a_guest_that_is_reset_is_not_to_be_thawed_any_more(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig)
        async with agent_in(rig) as inside:
            await alpha.freeze(WEB1)
            await alpha.reset(WEB1)
            inside.deafen()  # as while it boots
            await alpha.thaw(WEB1)

    run(scenario)


def test_a_guest_that_was_frozen_is_thawed_before_it_moves(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig, nics=())
        async with agent_in(rig) as inside:
            await alpha.freeze(WEB1)
            await send(rig, await receive(rig, parameters=with_line(rig).parameters))
            assert not inside.is_frozen

    run(scenario)


def test_an_agent_that_is_not_there_tells_nothing_and_freezes_nothing(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig)
        async with agent_in(rig) as inside:
            inside.deafen()
            found = await report_of(alpha)
            assert found
            assert found.interfaces is None
            with pytest.raises(NodeFailure, match="agent in web1 does not answer"):
                await alpha.freeze(WEB1)
            await alpha.thaw(WEB1)

    run(scenario)


def test_a_guest_whose_agent_hangs_while_it_is_frozen_is_thawed_later(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = await start(rig)
        async with agent_in(rig) as inside:
            await alpha.freeze(WEB1)
            inside.deafen()
            with pytest.raises(NodeFailure, match="agent in web1 does not answer"):
                await alpha.thaw(WEB1)
            inside.hear()
            await until(lambda: not inside.is_frozen)

    run(scenario)


def test_without_a_line_to_an_agent_nothing_is_frozen(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha = rig.nodes["alpha"]
        with pytest.raises(Conflict, match="cannot be frozen"):
            await alpha.freeze(WEB1)
        await alpha.ensure_running(rig.spec(), ())
        with pytest.raises(Conflict, match=r"web1 cannot be frozen: it .* line to an agent"):
            await alpha.freeze(WEB1)
        found = await report_of(alpha)
        assert found
        assert found.interfaces is None

    run(scenario)


needs_qemu = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)


@needs_qemu
def test_a_guest_is_told_to_go_down_by_its_agent_besides_its_button() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)
        await goes_on(rig, "alpha")
        pretended = PretendedAgent()
        async with pretended.at(rig.home("alpha").agent_socket):
            await alpha.shut_down(WEB1, 10)
        assert pretended.told == ["guest-shutdown"]
        assert await alpha.guests() == ()

    run_kvm(scenario)


@needs_qemu
def test_a_guest_goes_down_by_its_button_alone_where_its_agent_hangs() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)  # whose line nobody listens to at the other end
        await goes_on(rig, "alpha")
        await alpha.shut_down(WEB1, 10)
        assert await alpha.guests() == ()

    run_kvm(scenario)


@needs_qemu
def test_a_freeze_that_fails_half_way_is_undone() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)
        pretended = PretendedAgent()
        pretended.refuses.add("guest-fsfreeze-freeze")
        async with pretended.at(rig.home("alpha").agent_socket):
            with pytest.raises(NodeFailure, match="refuses guest-fsfreeze-freeze: it is Sunday"):
                await alpha.freeze(WEB1)
            await until(lambda: pretended.told[-1] == "guest-fsfreeze-thaw")
            await until(lambda: not rig.home("alpha").is_frozen)

    run_kvm(scenario)


@needs_qemu
def test_an_agent_that_neither_freezes_nor_thaws_is_asked_once_and_keeps_nobody_from_moving() -> (
    None
):
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig, nics=())
        pretended = PretendedAgent()
        pretended.refuses |= {"guest-fsfreeze-freeze", "guest-fsfreeze-thaw"}
        async with pretended.at(rig.home("alpha").agent_socket):
            with pytest.raises(NodeFailure, match="refuses guest-fsfreeze-freeze: it is Sunday"):
                await alpha.freeze(WEB1)
            await alpha.thaw(WEB1)
            await send(rig, await receive(rig, parameters=with_line(rig).parameters))
        assert pretended.told == ["guest-fsfreeze-freeze", "guest-fsfreeze-thaw"]

    run_kvm(scenario)


@needs_qemu
def test_a_guest_that_is_frozen_already_and_refuses_stays_to_be_thawed() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)
        pretended = PretendedAgent()
        async with pretended.at(rig.home("alpha").agent_socket):
            await alpha.freeze(WEB1)
            pretended.refuses |= {"guest-fsfreeze-freeze", "guest-fsfreeze-thaw"}
            with pytest.raises(NodeFailure, match="refuses guest-fsfreeze-freeze"):
                await alpha.freeze(WEB1)
            assert rig.home("alpha").is_frozen
            pretended.refuses.clear()
            await until(lambda: not pretended.is_frozen)

    run_kvm(scenario)


@needs_qemu
def test_addresses_are_asked_for_again_and_forgotten_when_nobody_tells_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents, "ASK_EVERY_S", 0.0)

    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)

        async def tells(*addresses: str) -> bool:
            found = await report_of(alpha)
            told = (found and found.interfaces) or ()
            return tuple(each for one in told for each in one.addresses) == addresses

        pretended = PretendedAgent()
        async with pretended.at(rig.home("alpha").agent_socket):
            assert await tells("192.0.2.1")
            pretended.interfaces = [{"ip-addresses": [{"ip-address": "2001:db8::9"}]}]
            await until(lambda: tells("2001:db8::9"))
            pretended.interfaces = "nonsense"
            assert await tells("2001:db8::9")
            monkeypatch.setattr(agents, "FORGET_S", 0.0)
            await until(tells)

    run_kvm(scenario)


@needs_qemu
def test_what_an_agent_told_is_not_told_of_the_same_guest_started_anew() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = await start(rig)
        async with PretendedAgent().at(rig.home("alpha").agent_socket):
            found = await report_of(alpha)
            assert found
            assert found.interfaces == TOLD
        await alpha.ensure_gone(WEB1)
        await start(rig)
        found = await report_of(alpha)
        assert found
        assert (found.memory, found.interfaces) == (MiB(8), None)

    run_kvm(scenario)
