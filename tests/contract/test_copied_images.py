"""What is no file is copied from node to node, too: devices, and what images have kept."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.model.backing import BlockBacking, Qcow2Backing
from common.noderpc.copies import Compression
from noded.copies.chunks import CHUNK
from noded.copies.driver import ProcessCopier
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from noded.storage.qcow2.driver import Qcow2Storage
from noded.storage.qcow2.guests import NobodyHasThem
from tests.contract.test_copies import ADDRESSES, COPY, SIZE, ProcessRig, begin, fetched
from tests.support.copying import told
from tests.support.https_node import LOCALHOST, TestCluster, run
from tests.support.images import Opened, kept_in


def test_what_is_in_no_pool_is_copied_too(tmp_path: Path) -> None:
    """Such as a device that was adopted: no node lists it, and it has a name all the same."""
    rig = ProcessRig(tmp_path, TestCluster(tmp_path / "identities"))

    async def scenario() -> None:
        for node in ADDRESSES:
            await rig.storages[node].ensure_present(rig.disks[node])
        rig.fill("alpha")
        paths = {node: rig.path(node) for node in ADDRESSES}
        for node in ADDRESSES:
            device = BlockBacking(device=f"/dev/disk/by-id/{node}")
            rig.disks[node] = replace(rig.disks[node], backing=device)
            rig.copiers[node] = ProcessCopier(
                rig.root / f"run-{node}", identity=rig.cluster.identity(node), address=LOCALHOST,
                open_disk=lambda _, path=paths[node]: os.open(path, os.O_RDWR),  # type: ignore[misc]
            )  # fmt: skip
        try:
            await begin(rig)
            await fetched(rig)
        finally:
            for copier in rig.copiers.values():
                await copier.end(COPY)
        assert paths["alpha"].read_bytes() == paths["beta"].read_bytes()

    run(scenario())


class InImages(ProcessRig):
    """The disk of alpha is an image, of which is copied what it has kept; that of beta another."""

    def __init__(self, root: Path, cluster: TestCluster) -> None:
        super().__init__(root, cluster)
        for name, raw in self.disks.items():
            directories = Directories(local=str(root / name))
            files = FileStorage(lambda directories=directories: directories)  # type: ignore[misc]
            self.storages[name] = Qcow2Storage(
                lambda directories=directories: directories,  # type: ignore[misc]
                files,
                NobodyHasThem(),
            )
            backing = Qcow2Backing(path=f"{root}/{name}/{raw.id}.qcow2", shared=False)
            self.disks[name] = replace(raw, backing=backing)
            self.restart_noded(name)

    def fill(self, node: str) -> None:
        with closing(Opened(self.storages[node], self.disks[node])) as opened:
            opened.contents.write(self.written, 5 * CHUNK + 4711)

    def read(self, node: str) -> bytes:
        with closing(Opened(self.storages[node], self.disks[node])) as opened:
            return opened.contents.read(opened.contents.size, 0)

    written = os.urandom(3 * CHUNK)


def test_what_an_image_has_kept_is_copied_into_another_while_a_guest_has_it_open(
    tmp_path: Path,
) -> None:
    if not shutil.which("qemu-img"):
        pytest.skip("qemu-img IS NOT INSTALLED: images were not copied")
    rig = InImages(tmp_path, TestCluster(tmp_path / "identities"))

    async def story(rig: InImages) -> None:
        snapshot, images = kept_in(rig.disks["alpha"]), rig.storages["alpha"]
        await images.take_snapshots([snapshot])
        rig.use("alpha")
        rig.disks["alpha"] = snapshot.kept
        await begin(rig, compression=Compression.FAST)
        assert (await fetched(rig)).total == SIZE * CHUNK
        expected = bytes(5 * CHUNK + 4711) + rig.written
        assert rig.read("beta") == expected.ljust(SIZE * CHUNK, b"\0")
        assert await rig.storages["beta"].problem(rig.disks["beta"]) == ""
        found = await rig.storages["beta"].find(rig.disks["beta"])
        assert found is not None
        assert found.allocated is not None
        assert found.allocated <= 5

    try:
        run(told(rig, story, COPY))
    finally:
        for descriptor in rig.opened:
            os.close(descriptor)
