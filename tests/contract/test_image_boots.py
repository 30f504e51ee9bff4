"""An image that was installed boots, and its guest reads what it is told: real QEMU, real Linux."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from common.model.disk import Mode
from common.names import DiskId, MiB
from noded.images.create import install
from tests.contract.test_hypervisor_linux import build
from tests.support.disks import file_disk
from tests.support.guest_builder import builder
from tests.support.hypervisors import KvmRig, has_qemu, run_kvm, until

MIB = 1 << 20
MARK = b"this is the image\n"
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs none /dev
while read -r module; do /bin/busybox insmod "/modules/$module"; done < /modules/order
/bin/busybox mount -t vfat -o ro /dev/vdb /seed
echo "disk: $(/bin/busybox head -c 17 /dev/vda)"
echo "name: $(/bin/busybox cat /seed/meta-data)"
echo "user: $(/bin/busybox cat /seed/user-data)"
echo "that is all"
/bin/busybox sleep 1000
"""

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: no real guest was started"
)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Make a guest that mounts its second disk and says what is on it."""
    own, directory = builder(), tmp_path_factory.mktemp("guest")
    try:
        _, modules = own.find_kernel(own.SETUP_KERNEL)
    except own.Unbuildable as error:
        pytest.skip(f"NO REAL KERNEL WAS BOOTED: {error}")

    own.MODULES = ("virtio_pci", "virtio_blk", "nls_cp437", "nls_ascii", "nls_iso8859_1", "vfat")
    archive = own.Archive()
    for name in ("bin", "dev", "modules", "proc", "seed", "sys"):
        archive.directory(name)
    archive.device("dev/console", major=5, minor=1)
    archive.file("bin/busybox", own.BUSYBOX.read_bytes(), executable=True)
    archive.file("init", INIT.encode(), executable=True)
    order = own.load_order((modules / "modules.dep").read_text(encoding="utf-8"))
    for path in order:
        archive.file(f"modules/{own.module_name(path)}.ko", own.read_module(modules / path))
    names = "".join(f"{own.module_name(path)}.ko\n" for path in order)
    archive.file("modules/order", names.encode())
    build(directory)
    (directory / "initrd").write_bytes(archive.finish())
    return {
        "accelerator": "auto",
        "kernel_path": str(directory / "vmlinuz"),
        "initrd_path": str(directory / "initrd"),
        "kernel_args": "quiet panic=1",
    }


def test_a_guest_finds_its_image_its_name_and_its_key(kernel: dict[str, Any]) -> None:
    async def scenario(rig: KvmRig) -> None:
        images = rig.root / "images"
        images.mkdir()
        (images / "small.raw").write_bytes(MARK.ljust(MIB))
        rig.rules.write_text(f"image {Path(kernel['kernel_path']).parent}\nimage {images}\n")
        disks = [rig.root / "disk.img", rig.root / "seed.img"]
        for path in disks:
            path.write_bytes(bytes(4 * MIB))
        told = {
            "INSTANCE_NAME": "web1.example.com", "INSTANCE_UUID": "1111", "NIC_COUNT": "0",
            "DISK_COUNT": "2", "DISK_0_PATH": str(disks[0]), "DISK_1_PATH": str(disks[1]),
            "DISK_1_NAME": "cidata", "OSP_FILE": str(images / "small.raw"),
            "OSP_USER": "jane", "OSP_SSH_KEY": "ssh-ed25519 AAAAC3Nza jane",
        }  # fmt: skip
        install(told, cache=rig.root / "cache", rules=rig.rules)
        seed = replace(file_disk(DiskId("seed"), str(disks[1])), mode=Mode.READ_ONLY)
        spec = rig.spec(
            memory=MiB(128), disks=(file_disk("disk", str(disks[0])), seed), parameters=kernel
        )
        await rig.nodes["alpha"].ensure_running(spec, ())
        log = rig.home("alpha").serial_log
        await until(lambda: re.search(b"that is all", log.read_bytes()) is not None)
        said = log.read_bytes()
        assert b"disk: this is the image" in said
        assert b'"local-hostname": "web1.example.com"' in said
        assert b"ssh-ed25519 AAAAC3Nza jane" in said

    run_kvm(scenario)
