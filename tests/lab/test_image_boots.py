"""An operator has an image installed on a node's volumes; its guest boots, and knows its name."""

import pytest

from deploy.uml.place import SHARED
from tests.lab.leftovers import leftovers
from tests.lab.stage import Stage, said, until
from tests.support.image_guest import LAST, MARK, NoKernel, put_image_guest

NAME = "web1"
DIRECTORY = f"{SHARED}/image-guest"
KERNEL = f"kernel_path={DIRECTORY}/vmlinuz,initrd_path={DIRECTORY}/initrd"
KEY = "ssh-ed25519 AAAAC3Nza jane"
BOOT_S = 240.0  # on an idle machine 20
MIB = 1 << 20


def test_a_guest_of_an_image_boots_and_finds_its_disk_its_name_and_its_key(stage: Stage) -> None:
    files = stage.lab.place.shared / "image-guest"
    try:
        put_image_guest(files)
    except NoKernel as error:
        pytest.skip(f"NO REAL KERNEL WAS BOOTED: {error}")
    (files / "small.raw").write_bytes(MARK.ljust(MIB))
    try:
        added = said(
            stage.alpha,
            "gnt-instance add -t plain -n gamma --disk 0:size=8M "
            "--disk 1:size=4M,name=cidata,mode=ro --no-nics -B memory=128,vcpus=1 -o image "
            f"-O 'file={DIRECTORY}/small.raw,user=jane,ssh_key={KEY}' -H kvm:{KERNEL} {NAME}",
        )
        assert "exit 0" in added
        uuid = stage.alpha.run(f"gnt-instance list --no-headers -o uuid {NAME}").strip()
        console = f"cat /run/gantry/instances/{uuid}/serial.log"
        until(lambda: LAST in stage.gamma.run(console), "the guest to say it all", BOOT_S)
        told = said(stage.gamma, console)
        assert f"disk: {MARK.decode().strip()}" in told
        assert f'"local-hostname": "{NAME}"' in told
        assert KEY in told
    finally:
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
    assert not leftovers(stage)
