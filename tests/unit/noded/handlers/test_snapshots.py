"""Orders for snapshots: of one moment for all disks of an instance, or none of them."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.backing import LvmBacking
from common.model.disk import Mode
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, InstanceName, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec, GuestState
from common.noderpc.snapshots import SnapshotSpec
from noded.handlers.snapshots import SnapshotHandlers
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.plain import PlainStorage
from noded.storage.storages import Storages
from noded.system.turns import Turns
from tests.support.clock import simulate

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
POOL = Pool(kind=PoolKind.VOLUME_GROUP, name="xenvg")


def disk(number: int, kind: str = "disk") -> DiskSpec:
    uuid = DiskId(f"dddddddd-0000-4000-8000-{number:012}")
    backing = LvmBacking(group="xenvg", name=f"{uuid}.{kind}")
    return DiskSpec(id=uuid, instance=WEB1, size=MiB(8), backing=backing)


def snapshot(number: int) -> SnapshotSpec:
    kept = replace(disk(number + 5, "snapshot"), mode=Mode.READ_ONLY)
    return SnapshotSpec(of=disk(number), kept=kept, room=MiB(8))


BOTH = (snapshot(0), snapshot(1))


class Rig:
    """web1 runs, with two disks; ``states`` are those in which it was when one was kept."""

    def __init__(self) -> None:
        self.volumes = FakeVolumes("xenvg")
        self.storage = PlainStorage(self.volumes)
        self.guests = FakeHypervisor(FakeWorld(), "127.0.0.1")
        self.states: list[GuestState] = []
        self.frozen: list[bool] = []
        self.volumes.on_copy = self._noticed
        storages = Storages({LvmBacking: self.storage}, {PoolKind.VOLUME_GROUP: self.storage})
        self.handlers = SnapshotHandlers(storages, {"kvm": self.guests}, Turns())

    async def begin(self) -> None:
        guest = GuestSpec(
            id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(8), vcpus=1,
            disks=(disk(0), disk(1)), parameters={"use_guest_agent": True},
        )  # fmt: skip
        for each in guest.disks:
            await self.storage.ensure_present(each)
        await self.guests.ensure_running(guest, ())

    async def names(self) -> list[str]:
        return sorted(each.place.name for each in await self.volumes.inventory(POOL))

    def _noticed(self, source: str, target: str) -> None:
        if self.guests.has(WEB1):
            guest = self.guests._guests[WEB1]
            self.states.append(guest.state)
            self.frozen.append(guest.is_frozen)

    @property
    def is_frozen(self) -> bool:
        return self.guests._guests[WEB1].is_frozen


def test_the_guest_stands_still_while_its_disks_are_kept_and_not_for_longer() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        for _ in range(2):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH)
        assert rig.states == [GuestState.PAUSED] * 2
        (report,) = await rig.guests.guests()
        assert report.state is GuestState.RUNNING

    simulate(scenario())


def test_if_some_are_there_all_are_of_another_moment_and_taken_anew() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH[:1])
        await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH)
        assert len(rig.states) == 3
        assert len(await rig.names()) == 4

    simulate(scenario())


def test_if_one_cannot_be_taken_none_is_left_and_the_guest_goes_on() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        huge = replace(snapshot(1), room=MiB(1 << 30))
        with pytest.raises(NodeFailure, match="no space"):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=(snapshot(0), huge))
        assert len(await rig.names()) == 2
        (report,) = await rig.guests.guests()
        assert report.state is GuestState.RUNNING

    simulate(scenario())


@pytest.mark.parametrize(
    "wrong",
    [
        replace(snapshot(0), of=replace(disk(0), instance=WEB2)),
        replace(snapshot(0), kept=disk(0)),
        replace(snapshot(0), kept=replace(disk(5), id=DiskId("../x"))),
    ],
)
def test_what_makes_no_sense_reaches_no_driver(wrong: SnapshotSpec) -> None:
    async def scenario() -> None:
        rig = Rig()
        with pytest.raises(InvalidRequest):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=(wrong,))
        with pytest.raises(InvalidRequest):
            await rig.handlers.roll_back(
                snapshot=replace(wrong, kept=replace(wrong.of, id=DiskId("x")))
            )
        assert await rig.names() == []

    simulate(scenario())


def test_rolled_back_is_as_often_as_it_is_asked_for() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH)
        await rig.guests.ensure_gone(WEB1)
        for _ in range(2):
            await rig.handlers.roll_back(snapshot=BOTH[0])
        assert len(await rig.names()) == 4

    simulate(scenario())


def test_a_guest_is_frozen_before_it_stands_still_and_thawed_whatever_happens() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH, freeze=True)
        assert (rig.frozen, rig.states) == ([True] * 2, [GuestState.PAUSED] * 2)
        assert not rig.is_frozen
        with pytest.raises(NodeFailure):  # of a disk that is not there
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=(snapshot(2),), freeze=True)
        assert not rig.is_frozen
        (report,) = await rig.guests.guests()
        assert report.state is GuestState.RUNNING

    simulate(scenario())


def test_without_an_answer_of_the_agent_nothing_is_kept() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        rig.guests._guests[WEB1].is_deaf = True
        with pytest.raises(NodeFailure, match="agent in web1 does not answer"):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH, freeze=True)
        assert rig.states == []
        (report,) = await rig.guests.guests()
        assert report.state is GuestState.RUNNING

    simulate(scenario())


def test_a_guest_that_is_not_thawed_either_hides_no_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        message = "It thaws tomorrow."

        async def fail(_: FakeHypervisor, __: InstanceId) -> None:
            raise NodeFailure(message)

        monkeypatch.setattr(FakeHypervisor, "thaw", fail)
        with pytest.raises(NodeFailure, match="not there"):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=(snapshot(2),), freeze=True)
        with pytest.raises(NodeFailure, match=message):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH, freeze=True)

    simulate(scenario())


def test_who_is_paused_cannot_be_frozen_and_nothing_is_kept_unfrozen() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        await rig.guests.stand_still(WEB1)
        with pytest.raises(Conflict, match="cannot be frozen: it is paused"):
            await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH, freeze=True)
        assert rig.states == []

    simulate(scenario())


def test_what_does_not_run_needs_no_agent() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.begin()
        await rig.guests.ensure_gone(WEB1)
        await rig.handlers.ensure_taken(instance=WEB1, snapshots=BOTH, freeze=True)
        assert len(await rig.names()) == 4

    simulate(scenario())
