"""An image that was installed boots, and its guest reads what it is told: real QEMU, real Linux."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from common.model.disk import Mode
from common.names import DiskId, MiB
from noded.images.create import install
from tests.support.disks import file_disk
from tests.support.hypervisors import KvmRig, has_qemu, run_kvm, until
from tests.support.image_guest import LAST, MARK, NoKernel, put_image_guest

MIB = 1 << 20
pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: no real guest was started"
)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Make a guest that mounts its second disk and says what is on it."""
    directory = tmp_path_factory.mktemp("guest")
    try:
        put_image_guest(directory)
    except NoKernel as error:
        pytest.skip(f"NO REAL KERNEL WAS BOOTED: {error}")
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
        await until(lambda: LAST.encode() in log.read_bytes())
        said = log.read_bytes()
        assert b"disk: this is the image" in said
        assert b'"local-hostname": "web1.example.com"' in said
        assert b"ssh-ed25519 AAAAC3Nza jane" in said

    run_kvm(scenario)
