"""Real guests on images: what they are told, keep inside and grow, and what goes with them."""

from contextlib import closing, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.backing import FileBacking, Qcow2Backing
from common.model.disk import Mode
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from noded.handlers.snapshots import SnapshotHandlers
from noded.hypervisor.kvm import monitor
from noded.hypervisor.kvm.images import GuestsImages
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from noded.storage.qcow2.driver import Qcow2Storage
from noded.storage.storages import Storages
from noded.system.turns import Turns
from tests.support.file_rigs import DISK_B
from tests.support.hypervisors import MOVE, KvmRig, goes_on, has_qemu, run_kvm, send
from tests.support.images import Opened, kept_in
from tests.support.sequence import check

DISK_C = DiskId(str(DISK_B)[:-1] + "c")

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: guests with images were not tested"
)


class Images:
    """Both nodes of a rig see images, and web1 boots from one."""

    def __init__(self, kvm: KvmRig) -> None:
        self._kvm = kvm
        self.storages: dict[str, Storages] = {}
        self.images: dict[str, Qcow2Storage] = {}
        for name in kvm.nodes:
            files = FileStorage(self._directories)
            made = Qcow2Storage(self._directories, files, GuestsImages(kvm.root / name / "run"))
            both = Storages({FileBacking: files, Qcow2Backing: made}, {})
            self.images[name], self.storages[name] = made, both
            kvm.opening[name] = both.open

    async def make(self, number: int) -> DiskSpec:
        raw = self._kvm.disk(number)
        path = f"{self._kvm.root}/web1/{raw.id}.qcow2"
        disk = replace(raw, backing=Qcow2Backing(path=path, shared=False))
        await self.images["alpha"].ensure_present(disk)
        with closing(Opened(self.images["alpha"], disk)) as opened:
            opened.contents.write((self._kvm.root / f"{number}.img").read_bytes(), 0)
        return disk

    async def keep(self, node: str, disk: DiskSpec, name: DiskId) -> None:
        handlers = SnapshotHandlers(self.storages[node], {"kvm": self._kvm.nodes[node]}, Turns())
        await handlers.ensure_taken(instance=disk.instance, snapshots=(kept_in(disk, name),))

    def read(self, node: str, disk: DiskSpec) -> bytes:
        with closing(Opened(self.images[node], disk)) as opened:
            return opened.contents.read(opened.contents.size, 0)

    def _directories(self) -> Directories:
        return Directories(local=str(self._kvm.root))


def held(kvm: KvmRig) -> set[str]:
    """Return the names of what the QEMU of web1 has open."""
    found = kvm.home("alpha").process()
    assert found is not None
    with found:
        names = set()
        for each in Path(f"/proc/{found.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed just now
                names.add(each.readlink().name)
        return names


def test_a_guest_on_an_image_goes_on_while_it_is_kept_and_what_is_kept_is_read() -> None:
    async def scenario(kvm: KvmRig) -> None:
        rig, alpha = Images(kvm), kvm.nodes["alpha"]
        disk, images = await rig.make(0), rig.images["alpha"]
        await alpha.ensure_running(kvm.spec(disks=(disk,)), ())
        before = await goes_on(kvm, "alpha")
        for name in (DISK_B, DISK_C):
            await rig.keep("alpha", disk, name)
        after = await goes_on(kvm, "alpha")
        await images.ensure_absent(kept_in(disk, DISK_C).kept)
        assert await images.find(kept_in(disk, DISK_C).kept) is None
        kept = rig.read("alpha", kept_in(disk).kept)  # while the guest goes on
        told = check(kept)
        assert told.wrong == ()
        assert before <= told.whole_to <= after
        await alpha.ensure_gone(disk.instance)
        await images.roll_back(kept_in(disk))
        assert rig.read("alpha", disk) == kept
        assert await images.problem(disk) == ""
        await alpha.ensure_running(kvm.spec(disks=(disk,)), ())
        await goes_on(kvm, "alpha")

    run_kvm(scenario)


def test_a_guest_is_waited_for_that_is_silent_while_it_keeps_an_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(kvm: KvmRig) -> None:
        rig, alpha = Images(kvm), kvm.nodes["alpha"]
        disk = await rig.make(0)
        await alpha.ensure_running(kvm.spec(disks=(disk,)), ())
        guests = GuestsImages(kvm.root / "alpha" / "run")
        monkeypatch.setattr(monitor, "ANSWER_S", 0.0)  # of any other question
        assert await guests.keep(disk, DISK_B)
        monkeypatch.undo()
        assert await rig.images["alpha"].find(kept_in(disk).kept) is not None

    run_kvm(scenario)


def test_an_image_comes_grows_and_goes_while_its_guest_runs() -> None:
    async def scenario(kvm: KvmRig) -> None:
        rig, alpha = Images(kvm), kvm.nodes["alpha"]
        disk, more = await rig.make(0), await rig.make(1)
        read_only = replace(await rig.make(2), mode=Mode.READ_ONLY)
        await alpha.ensure_running(kvm.spec(disks=(disk, read_only)), ())
        await alpha.ensure_disks(kvm.spec(disks=(disk, read_only, more)))
        grown = replace(more, size=MiB(3))
        await rig.images["alpha"].grow(grown)
        found = await rig.images["alpha"].find(grown)
        assert found is not None
        assert found.size == 3  # before it is written down
        with pytest.raises(NodeFailure, match="block_resize"):
            await rig.images["alpha"].grow(replace(read_only, size=MiB(3)))
        await alpha.ensure_disks(kvm.spec(disks=(disk, read_only, grown)))
        assert await kvm.seen("alpha") == {0: 1, 1: 1, 2: 3}
        images = rig.images["alpha"]
        assert await images.snapshot_problem(disk) == ""
        assert "may only be read by the guest" in await images.snapshot_problem(read_only)
        with pytest.raises(NodeFailure, match="read"):
            await rig.keep("alpha", read_only, DISK_B)
        found = await images.find(grown)
        assert found is not None
        assert found.size == 3
        await alpha.ensure_disks(kvm.spec(disks=(disk,)))
        assert Path(disk.backing.where).name in held(kvm)
        assert Path(more.backing.where).name not in held(kvm)
        await alpha.ensure_gone(disk.instance)
        assert await images.snapshot_problem(read_only) == ""
        await rig.keep("alpha", read_only, DISK_B)

    run_kvm(scenario)


def test_a_guest_moves_with_its_image_and_all_that_is_in_it() -> None:
    async def scenario(kvm: KvmRig) -> None:
        rig, alpha, beta = Images(kvm), kvm.nodes["alpha"], kvm.nodes["beta"]
        disk = await rig.make(0)
        spec = kvm.spec(disks=(disk,))
        await alpha.ensure_running(spec, ())
        await goes_on(kvm, "alpha")
        await rig.keep("alpha", disk, DISK_B)
        await send(kvm, await beta.ensure_receiving(spec, (), MOVE))
        await beta.ensure_resumed(disk.instance, MOVE)
        await goes_on(kvm, "beta")
        await rig.keep("beta", disk, DISK_C)
        await beta.ensure_gone(disk.instance)
        await alpha.ensure_gone(disk.instance)
        written = check(rig.read("beta", disk))
        assert (written.wrong, written.starts) == ((), 1)
        first, second = (
            check(rig.read("beta", kept_in(disk, name).kept)).whole_to for name in (DISK_B, DISK_C)
        )
        assert first <= second <= written.whole_to
        assert await rig.images["beta"].problem(disk) == ""

    run_kvm(scenario)
