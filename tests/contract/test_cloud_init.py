"""What a guest is told at its first boot does what it says: Debian's own cloud-init reads it.

It runs in a copy of this machine's files that is thrown away, with names of processes, of mounts,
of the host and of nics that are its own. What it reads is taken out of the seed by ``mcopy``, since
not every kernel that tests run on has a driver for FAT; that guests mount the seed is seen in
``test_image_boots.py``.
"""

import os
import re
from pathlib import Path

import pytest

from noded.images.fat import fat_image
from noded.images.seed import LABEL, seed_files
from noded.system.execute import execute
from tests.support.https_node import run

UNPACKED = Path(__file__).parents[2] / ".cache/cloud-init"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHN0b3J5IG9mIGEga2V5IHRoYXQgb3BlbnM= jane"
TOLD = {
    "INSTANCE_NAME": "web1.example.com", "INSTANCE_UUID": "1111", "NIC_COUNT": "2",
    "NIC_0_MAC": "aa:00:00:00:00:01", "NIC_0_IP": "192.0.2.7",
    "NIC_0_NETWORK_SUBNET": "192.0.2.0/26",
    "NIC_1_MAC": "aa:00:00:00:00:02", "NIC_1_IP": "2001:db8::7",
    "NIC_1_NETWORK_GATEWAY6": "2001:db8::1",
    "OSP_USER": "jane", "OSP_SSH_KEY": KEY, "OSP_PASSWORD": "open: sesame",
    "OSP_GATEWAY": "192.0.2.1", "OSP_NAMESERVERS": "192.0.2.2",
}  # fmt: skip
# The root directory, the unpacked packages, and where what was made of them is kept afterwards.
FIRST_BOOT = """
set -e
above=$1/above root=$1/root
mkdir "$above" "$root" && mount -t tmpfs none "$above" && mkdir "$above/upper" "$above/work"
mount -t overlay none -o "lowerdir=/,upperdir=$above/upper,workdir=$above/work" "$root"
tar -C "$2" -c . | tar -C "$root" -x --keep-directory-symlink
seed=$root/var/lib/cloud/seed/nocloud
rm -rf "$root/var/lib/cloud" && mkdir -p "$seed" && mcopy -i "$1/seed" '::*' "$seed"
echo 'datasource_list: [NoCloud]' >"$root/etc/cloud/cloud.cfg.d/99-nocloud.cfg"
ip link add eth0 address aa:00:00:00:00:01 type veth peer name eth1 address aa:00:00:00:00:02
cd "$root"
mount -t proc none proc && mount -t sysfs none sys && mount --rbind /dev dev
mount -t tmpfs none run && mount -t tmpfs none tmp
chroot . cloud-init schema --config-file var/lib/cloud/seed/nocloud/user-data
chroot . cloud-init init --local
chroot . cloud-init init
chroot . cloud-init single --name set-passwords
mkdir "$1/made"
cp etc/hostname etc/passwd etc/shadow home/jane/.ssh/authorized_keys "$1/made"
cp etc/sudoers.d/90-cloud-init-users run/cloud-init/status.json "$1/made"
chroot . cloud-init query ds.meta_data.local_hostname >"$1/made/told"
cat etc/systemd/network/10-cloud-init-*.network etc/network/interfaces.d/50-cloud-init \
    >"$1/made/network" 2>/dev/null || true
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a private root takes root"),
    pytest.mark.skipif(
        not (UNPACKED / "usr/bin/cloud-init").exists(),
        reason="DEBIAN'S CLOUD-INIT IS NOT UNPACKED (deploy/setup --test): it read nothing",
    ),
]


def test_debians_cloud_init_makes_the_guest_what_it_is_told_to_be(tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(fat_image(LABEL, seed_files(TOLD)))
    run(
        execute(
            "unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--kill-child",
            "--mount-proc", "bash", "-c", FIRST_BOOT, "first-boot", str(tmp_path), str(UNPACKED),
            timeout_s=100,
        ),
        limit_s=110,
    )  # fmt: skip

    def made(name: str) -> str:
        return (tmp_path / "made" / name).read_text()

    assert "DataSourceNoCloud" in made("status.json")
    assert made("told").strip() == "web1.example.com"
    assert made("hostname").strip() == "web1"  # of a name that has parts Debian takes the first
    assert "\njane:" in made("passwd")
    assert KEY in made("authorized_keys")
    assert "jane ALL=(ALL) NOPASSWD:ALL" in made("90-cloud-init-users")
    (hidden,) = (line for line in made("shadow").splitlines() if line.startswith("jane:"))
    assert hidden.split(":")[1].startswith("$")
    first, second = re.split(r"(?=\[Address\])", made("network"))[1:]
    for text in ("=192.0.2.7/26", "=192.0.2.2", "Gateway=192.0.2.1", "=aa:00:00:00:00:01"):
        assert text in first
    for text in ("=2001:db8::7/64", "Gateway=2001:db8::1", "=aa:00:00:00:00:02"):
        assert text in second
    assert "Destination" not in first + second
