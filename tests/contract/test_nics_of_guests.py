"""Nics that come and go while a guest runs, in QEMU with real taps and in the fake."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.names import NicId
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm import letting_go
from noded.hypervisor.kvm.monitor import monitor
from noded.network.netlink import open_netlink
from noded.network.tuntap import make_tap, open_tap
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    KvmRig,
    Rig,
    goes_on,
    has_qemu,
    receive,
    report_of,
    run_fake,
    send,
)
from tests.support.namespace import in_new_network

needs_qemu = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

Run = Callable[[Callable[[Rig], Awaitable[None]]], None]


def nic(number: int, *, mac: str = "") -> NicSpec:
    return NicSpec(
        id=NicId(f"cccccccc-0000-4000-8000-{number:012}"), instance=WEB1, mode="bridged",
        mac=mac or f"aa:00:00:00:00:{number:02x}", link="br0",
    )  # fmt: skip


def taps(nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
    return tuple(f"gnt{nic.id[-1]}" for nic in nics)


def run_kvm(scenario: Callable[[KvmRig], Awaitable[None]]) -> None:
    """Run where the taps of nics 0 to 3 are, and no guest survives."""
    root = Path(tempfile.mkdtemp(prefix="hv-"))

    async def main() -> None:
        rig = KvmRig(root)
        await asyncio.to_thread(_raise_loopback)
        for name in taps(tuple(map(nic, range(4)))):
            make_tap(name)
        try:
            await scenario(rig)
        finally:
            for node in rig.nodes.values():
                await node.ensure_gone(WEB1)
                await node.close()

    try:
        in_new_network(main, loop_factory=uvloop.new_event_loop)
    finally:
        shutil.rmtree(root)


def _raise_loopback() -> None:
    with open_netlink("raise lo") as netlink:
        loopback = netlink.find("lo")
        assert loopback is not None
        netlink.set(loopback, state="up")


@pytest.fixture(params=["fake", "kvm"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "kvm" and not has_qemu:
        pytest.skip("QEMU IS NOT INSTALLED: the driver for real guests was not tested")
    return {"fake": run_fake, "kvm": run_kvm}[request.param]  # type: ignore[return-value]


async def give(rig: Rig, *nics: NicSpec, node: str = "alpha") -> None:
    await rig.nodes[node].ensure_nics(rig.spec(nics=nics), taps(nics))


async def slots(rig: Rig, node: str = "alpha") -> dict[NicId, int]:
    """Return the slots of nics as they are reported, which is as the guest has them."""
    report = await report_of(rig.nodes[node])
    assert report is not None
    assert report.nic_slots is not None
    assert report.nic_slots.keys() == set(report.nics)
    assert set(report.nic_slots.values()) == (await rig.seen_nics(node)).keys()
    return dict(report.nic_slots)


def test_nics_come_and_go_while_a_guest_runs(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        first, second, third = map(nic, range(3))
        await rig.nodes["alpha"].ensure_running(rig.spec(nics=(first, second)), ("gnt0", "gnt1"))
        await goes_on(rig, "alpha")
        for wanted, places in (
            ((first, second, third), (0, 1, 2)),
            ((first, third), (0, 2)),
            ((third, first, nic(3)), (2, 0, 1)),
            ((), ()),
            ((second,), (0,)),
        ):
            for _ in range(2):
                await give(rig, *wanted)
                assert await slots(rig) == {
                    nic.id: place for nic, place in zip(wanted, places, strict=True)
                }
            await rig.restart_noded("alpha")
        await goes_on(rig, "alpha")

    run(scenario)


def test_a_nic_with_another_mac_is_put_in_anew(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(nics=(nic(0), nic(1))), ("gnt0", "gnt1"))
        await goes_on(rig, "alpha")
        await give(rig, nic(0, mac="aa:00:00:00:00:77"), nic(1))
        assert await rig.seen_nics("alpha") == {0: "aa:00:00:00:00:77", 1: "aa:00:00:00:00:01"}

    run(scenario)


def test_guest_moves_with_its_nics_where_they_are(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rig.spec(nics=(nic(0), nic(1))), ("gnt0", "gnt1"))
        await goes_on(rig, "alpha")
        await give(rig, nic(1))
        kept = await slots(rig)
        assert kept == {nic(1).id: 1}
        shell = rig.spec(nics=(nic(1),), nic_slots=kept)
        await send(rig, await beta.ensure_receiving(shell, ("gnt2",), MOVE))
        await beta.ensure_resumed(WEB1, MOVE)
        assert await slots(rig, "beta") == kept
        await give(rig, nic(1), nic(3), node="beta")
        assert await slots(rig, "beta") == {nic(1).id: 1, nic(3).id: 0}

    run(scenario)


def test_nics_of_what_does_not_run_are_left_alone(run: Run) -> None:
    async def scenario(rig: Rig) -> None:
        await give(rig, nic(0))
        assert await report_of(rig.nodes["alpha"]) is None
        await receive(rig, node="alpha")
        with pytest.raises(Conflict, match="The nics of web1 cannot be changed here"):
            await give(rig, nic(0))

    run(scenario)


@needs_qemu
def test_guest_that_does_not_let_go_keeps_its_nic_and_its_tap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firmware that found nothing to boot from hears nobody."""
    monkeypatch.setattr(letting_go, "LET_GO_S", 0.5)

    async def scenario(rig: KvmRig) -> None:
        spec = rig.spec(disks=(), nics=(nic(0),))
        await rig.nodes["alpha"].ensure_running(spec, ("gnt0",))
        with pytest.raises(NodeFailure, match=r"asked to let go of its nic .* may do so"):
            await give(rig)
        assert await slots(rig) == {nic(0).id: 0}
        with pytest.raises(OSError, match="busy"):
            open_tap("gnt0")
        await rig.nodes["alpha"].reset(WEB1)  # by which it does let go
        await give(rig)
        assert await slots(rig) == {}

    run_kvm(scenario)


@needs_qemu
def test_what_was_half_put_in_is_put_in_as_a_whole() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        # As if noded had died amid it: QEMU has the tap, and the guest no nic.
        home = rig.home("alpha")
        record = home.record()
        assert record is not None
        home.write(replace(record, nics=(nic(0).id,), nic_slots={nic(0).id: 0}))
        tap = open_tap("gnt0")
        async with monitor(home.qmp_socket, "web1") as session:
            await session.lend("tap0", tap)
            await session.ask("netdev_add", type="tap", id="net0", fd="tap0")
        os.close(tap)
        await give(rig, nic(0))
        assert await slots(rig) == {nic(0).id: 0}
        await give(rig)
        os.close(open_tap("gnt0"))  # nobody has it any more

    run_kvm(scenario)


@needs_qemu
def test_a_tap_that_cannot_be_had_leaves_nothing() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(nics=(nic(0),)), ("gnt0",))
        with pytest.raises(NodeFailure, match="device gnt9 is not there"):
            await alpha.ensure_nics(rig.spec(nics=(nic(0), nic(1))), ("gnt0", "gnt9"))
        with pytest.raises(NodeFailure, match="another process uses it"):
            await alpha.ensure_nics(rig.spec(nics=(nic(0), nic(1))), ("gnt0", "gnt0"))
        assert await slots(rig) == {nic(0).id: 0}

    run_kvm(scenario)


@needs_qemu
def test_nics_are_of_the_kind_and_in_the_machine_that_the_guest_was_started_with() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        q35 = {"machine_version": "pc-q35-7.2", "nic_type": "e1000"}
        await alpha.ensure_running(rig.spec(parameters=q35), ())
        await goes_on(rig, "alpha")
        wanted = tuple(map(nic, range(3)))
        await alpha.ensure_nics(rig.spec(nics=wanted), taps(wanted))
        assert list((await slots(rig)).values()) == [0, 1, 2]
        async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
            kind = await session.ask("qom-get", path="/machine/peripheral/nic1", property="type")
        assert kind == "e1000"

    run_kvm(scenario)


@needs_qemu
def test_nics_of_what_an_older_version_has_started_are_left_as_they_are() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        home = rig.home("alpha")
        record = home.record()
        assert record is not None
        home.write(replace(record, nic_slots=None))
        with pytest.raises(Conflict, match="an older version has started it; stop it"):
            await give(rig, nic(0))

    run_kvm(scenario)
