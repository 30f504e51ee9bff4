"""Debian's packages of operating systems on nodes, and what is on a disk that they have made."""

import re
import shlex
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from deploy.uml.fetch import download
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from deploy.uml.place import DEBIAN_12, SHARED
from tests.lab.debian_mirror import serving
from tests.lab.stage import Stage
from tests.support.guest_builder import builder

# The definitions, and what they depend on that nodes do not have.
PACKAGES = (
    "debootstrap", "dump", "fdisk", "ganeti-instance-debootstrap", "ganeti-os-noop", "kpartx",
    "liblzo2-2", "libpsl5", "wget",
)  # fmt: skip
DIRECTORY = "debian-os"  # of the directory that nodes share
GUEST = f"kernel_path={SHARED}/{DIRECTORY}/vmlinuz,initrd_path={SHARED}/{DIRECTORY}/initrd"
MADE = "/var/cache/ganeti-instance-debootstrap"  # by scripts, and no package's
BEFORE_PARTITION = 2048 * 512  # bytes, as the definition leaves them
INSTALL_S = 600.0

# Only what is required: the definition has no word for that, but puts the components between
# debootstrap's arguments as they are. It writes to a directory that ifupdown makes.
SETTINGS = """
MIRROR={mirror}
SUITE={suite}
EXTRA_PKGS=ifupdown
COMPONENTS="main --variant=minbase"
"""

# Kernel and initrd are ours; the disk is what was installed, and so is each program from bash on.
INIT = b"""#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t ext4 /dev/vda1 /mnt
exec /bin/busybox chroot /mnt /bin/bash -c '
    echo "Debian $(cat /etc/debian_version) is $(cat /etc/hostname)"
    exec sleep infinity'
"""


@contextmanager
def installable(stage: Stage) -> Iterator[None]:
    """Have Debian's packages on all nodes, and a mirror that they reach; afterwards purge them."""
    packages = stage.lab.place.shared / DIRECTORY / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    packages.parent.mkdir(exist_ok=True)
    download(PACKAGES, DEBIAN_12, packages)
    with serving(stage.lab.place) as mirror:
        settings = SETTINGS.format(mirror=mirror, suite=DEBIAN_12)
        install = (
            f"dpkg --install {SHARED}/{DIRECTORY}/packages/*.deb && "
            f"echo {shlex.quote(settings)} >>/etc/default/ganeti-instance-debootstrap"
        )
        try:
            _on_all(stage, install)
            yield
        finally:
            _on_all(stage, f"dpkg --purge {' '.join(PACKAGES)}; rm -rf {MADE}")
            shutil.rmtree(packages.parent)


def _on_all(stage: Stage, line: str) -> None:
    with ThreadPoolExecutor() as all_at_once:
        list(all_at_once.map(lambda node: node.run(line, timeout_s=INSTALL_S), stage.nodes))


def on_disk(stage: Stage, name: str) -> list[str]:
    """Return the version and the host name of the Debian on the disk of a stopped instance.

    Its file system is mounted read-only on the node, and its packages are complete.
    """
    (device,) = re.findall(
        r"/dev/[\w./-]*\w", stage.alpha.run(f"gnt-instance activate-disks {name}")
    )
    where = stage.alpha.run(f"gnt-instance list --no-headers -o pnode {name}").strip()
    mount = f"mount -o ro,loop,offset={BEFORE_PARTITION} {device} /mnt"
    looks = "cat /mnt/etc/debian_version /mnt/etc/hostname && chroot /mnt dpkg --audit"
    try:
        return (
            stage.lab.node(where)
            .run(
                f"{mount} && {{ {looks}; code=$?; umount /mnt; exit $code; }}", timeout_s=INSTALL_S
            )
            .split()
        )
    finally:
        stage.alpha.run(f"gnt-instance deactivate-disks {name}")


def put_guest(lab: Lab) -> None:
    """Have a kernel where all nodes see it that runs what is on a disk; see ``GUEST``."""
    build = builder()
    kernel, modules = build.find_kernel(build.SETUP_KERNEL)
    files = lab.place.shared / DIRECTORY
    (files / "vmlinuz").write_bytes(kernel.read_bytes())
    beside = build.Archive()
    beside.directory("mnt")
    beside.file("init", INIT, executable=True)
    # The kernel unpacks one archive after the other; what comes last counts.
    (files / "initrd").write_bytes(build.make_initrd(modules) + beside.finish())


def told(node: Node, uuid: str) -> str:
    """Return what the guest of an instance has said on its console."""
    return node.run(f"cat /run/gantry/instances/{uuid}/serial.log")
