"""Orders about disks: checked before the driver sees them, one at a time for each instance."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.messages import to_json
from common.model.backing import FileBacking, LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.rpc.server import Dispatcher
from noded.handlers.disks import DiskHandlers
from noded.handlers.network import NetworkHandlers
from noded.network.fake import FakeNetwork
from noded.storage.directories import Directories, path_of
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.volumes import NewVolume, Volume
from noded.storage.plain import PlainStorage
from noded.storage.storages import Storages
from noded.system.turns import Turns
from tests.support.clock import simulate
from tests.support.disks import directory, only_files

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
DISK_A = DiskId("dddddddd-0000-4000-8000-00000000000a")
DISK_B = DiskId("dddddddd-0000-4000-8000-00000000000b")
DIRECTORIES = Directories(local="/srv/local", shared="/srv/shared")


class SlowStorage(FakeStorage):
    """Notices when two changes to one instance's disks overlap."""

    def __init__(self) -> None:
        super().__init__(lambda: DIRECTORIES, local=FakeFiles(), shared=FakeFiles())
        self.changing: set[InstanceId] = set()

    async def ensure_present(self, disk: DiskSpec) -> None:
        assert disk.instance not in self.changing
        self.changing.add(disk.instance)
        await asyncio.sleep(1)
        await super().ensure_present(disk)
        self.changing.remove(disk.instance)


def spec(
    id: DiskId = DISK_A, *, instance: InstanceId = WEB1, size: int = 64, name: str = "disk0"
) -> DiskSpec:
    backing = FileBacking(path=f"/srv/local/{instance}/{name}", shared=False)
    return DiskSpec(id=id, instance=instance, size=MiB(size), backing=backing)


def test_disks_come_and_go() -> None:
    async def scenario() -> None:
        disks = DiskHandlers(only_files(SlowStorage()), Turns())
        await disks.ensure_present(disk=spec())
        report = DiskReport(id=DISK_A, instance=WEB1, size=MiB(64))
        assert await disks.find(disks=(spec(DISK_B), spec(DISK_A))) == (None, report)
        await disks.grow(disk=spec(size=96))
        assert await disks.find(disks=(spec(),)) == (replace(report, size=MiB(96)),)
        assert await disks.inventory(pools=(directory("/srv/local"),)) == (path_of(spec()),)
        assert await disks.attach(disks=(spec(),), access=Access.SOLE) == (path_of(spec()),)
        await disks.detach(disks=(spec(), spec(DISK_B)))
        await disks.ensure_absent(disk=spec())
        assert await disks.find(disks=(spec(),)) == (None,)

    simulate(scenario())


class CountedVolumes(FakeVolumes):
    """Notes how many volumes each call was about."""

    def __init__(self) -> None:
        super().__init__("vg")
        self.calls: list[int] = []

    async def activate(self, volumes: Sequence[Volume]) -> tuple[str, ...]:
        self.calls.append(len(volumes))
        return await super().activate(volumes)

    async def deactivate(self, volumes: Sequence[Volume]) -> None:
        self.calls.append(len(volumes))
        await super().deactivate(volumes)


def test_disks_of_an_instance_are_attached_together_and_told_in_order() -> None:
    def on(id: DiskId, instance: InstanceId = WEB1) -> DiskSpec:
        backing = LvmBacking(group="vg", name=f"{id}.disk")
        return DiskSpec(id=id, instance=instance, size=MiB(8), backing=backing)

    async def scenario() -> None:
        volumes = CountedVolumes()
        disks = DiskHandlers(Storages({LvmBacking: PlainStorage(volumes)}, {}), Turns())
        other = replace(on(DiskId(f"{DISK_A[:-1]}c")), instance=InstanceId(f"{WEB1[:-1]}2"))
        every = (on(DISK_B), other, on(DISK_A))
        for disk in every:
            await disks.ensure_present(disk=disk)
        paths = await disks.attach(disks=every, access=Access.SOLE)
        assert [path.removesuffix(".disk")[-1] for path in paths] == ["b", "c", "a"]
        await disks.detach(disks=every)
        assert volumes.calls == [2, 1, 2, 1]
        found = await disks.find(disks=every)
        assert [each.id for each in found if each] == [disk.id for disk in every]

    simulate(scenario())


def test_changes_to_one_instance_take_turns_and_others_do_not_wait() -> None:
    async def scenario() -> None:
        disks = DiskHandlers(only_files(SlowStorage()), Turns())
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                other = InstanceId(f"22222222-0000-4000-8000-{number:012}")
                group.create_task(disks.ensure_present(disk=spec(instance=other)))
            for name in ("disk0", "disk1", "disk2"):
                group.create_task(disks.ensure_present(disk=spec(name=name)))
        assert asyncio.get_running_loop().time() == 3

    simulate(scenario())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (spec(DiskId("disk0")), "UUID"),
        (spec(instance=InstanceId("..")), "UUID"),
        (spec(size=0), "at least 1 MiB"),
        (spec(size=-5), "at least 1 MiB"),
    ],
)
def test_senseless_disk_is_refused(bad: DiskSpec, words: str) -> None:
    async def scenario() -> None:
        disks = DiskHandlers(only_files(SlowStorage()), Turns())
        for call in (disks.ensure_present, disks.ensure_absent, disks.grow):
            with pytest.raises(InvalidRequest, match=words):
                await call(disk=bad)
        for look in (disks.find, disks.detach, partial(disks.attach, access=Access.SOLE)):
            with pytest.raises(InvalidRequest, match=words):
                await look(disks=(spec(), bad))

    simulate(scenario())


def test_calls_travel_as_json() -> None:
    async def scenario() -> None:
        dispatcher = Dispatcher(
            DiskHandlers(only_files(SlowStorage()), Turns()), NetworkHandlers(FakeNetwork("br0"))
        )
        call = dispatcher.find("disks", "ensure_present")
        reply = await dispatcher.run(call, to_json({"disk": spec()}))
        assert (reply.status, reply.body) == (200, b'{"result":null}')
        reply = await dispatcher.run(call, b'{"disk":{"id":"x","wipe":true}}')
        assert reply.status == 400
        links = dispatcher.find("network", "links")
        reply = await dispatcher.run(links, to_json({"names": ["br0", "br1"]}))
        assert reply.body == b'{"result":[true,false]}'

    simulate(scenario())


def test_pool_of_a_kind_that_a_node_cannot_have_is_named() -> None:
    async def scenario() -> None:
        storages = only_files(SlowStorage())
        with pytest.raises(NodeFailure, match="cannot keep disks in the volume group xenvg"):
            await storages.space(Pool(kind=PoolKind.VOLUME_GROUP, name="xenvg"))

    simulate(scenario())


def test_disks_of_an_instance_are_made_together_and_near_one_another() -> None:
    made: list[int] = []

    class Volumes(FakeVolumes):
        async def ensure_present(self, wanted: Sequence[NewVolume]) -> None:
            made.append(len(wanted))
            await super().ensure_present(wanted)

    def on(id: DiskId, instance: InstanceId = WEB1) -> DiskSpec:
        backing = LvmBacking(group="vg", name=f"{id}.disk")
        return DiskSpec(id=id, instance=instance, size=MiB(8), backing=backing)

    async def scenario() -> None:
        disks = DiskHandlers(Storages({LvmBacking: PlainStorage(Volumes("vg"))}, {}), Turns())
        foreign = on(DiskId(f"{DISK_A[:-1]}c"), InstanceId(f"{WEB1[:-1]}2"))
        await disks.ensure_present(disk=on(DISK_A), others=(on(DISK_B), foreign))
        await disks.ensure_present(disk=on(DISK_B))
        assert made == [2, 1]
        found = await disks.find(disks=(on(DISK_A), on(DISK_B), foreign))
        assert [each is not None for each in found] == [True, True, False]

    simulate(scenario())
