"""A guest with Debian's agent and a file system that it writes to, for stories about freezing."""

import re
from pathlib import Path
from typing import Any

from deploy.uml.command import run
from deploy.uml.lab import Lab
from deploy.uml.place import SHARED
from tests.support.guest_agent import QEMU_GA
from tests.support.guest_builder import builder

DIRECTORY = "agent-guest"  # of the directory that nodes share
PARAMETERS = (
    f"kernel_path={SHARED}/{DIRECTORY}/vmlinuz,initrd_path={SHARED}/{DIRECTORY}/initrd,"
    "use_guest_agent=yes"
)

# The agent is on the one port that there is; nothing else names it, as there is no udev.
INIT = b"""#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t ext4 /dev/vda /mnt
cd /dev
/usr/sbin/qemu-ga -m virtio-serial -p "/dev/$(ls | /bin/busybox grep vport)" -f /ga.pid -t / &
number=0
while :; do
    number=$((number + 1))
    echo $number >/mnt/number
    /bin/busybox sync
    echo "count $number"
    /bin/busybox sleep 0.2
done
"""


def put_files(lab: Lab) -> None:
    """Have its kernel and its programs where all nodes see them; see ``PARAMETERS``."""
    build = builder()
    build.MODULES = (*build.MODULES, "virtio_console")
    kernel, modules = build.find_kernel(build.SETUP_KERNEL)
    files = lab.place.shared / DIRECTORY
    files.mkdir(exist_ok=True)
    (files / "vmlinuz").write_bytes(kernel.read_bytes())
    # The kernel unpacks one archive after the other; what comes last counts.
    (files / "initrd").write_bytes(build.make_initrd(modules) + _beside(build.Archive()))


def _beside(archive: Any) -> bytes:
    """Pack what this guest has beside what any guest has."""
    linked = run(("ldd", str(QEMU_GA)))
    files = {"/usr/sbin/qemu-ga": QEMU_GA}
    files |= {path: Path(path) for path in re.findall(r"(/\S+) \(0x", linked)}
    parents = {parent for path in files for parent in Path(path).parents if parent != Path("/")}
    for directory in ("mnt", *sorted(str(each).lstrip("/") for each in parents)):
        archive.directory(directory)
    for path, source in files.items():
        archive.file(path.lstrip("/"), source.read_bytes(), executable=True)
    archive.file("init", INIT, executable=True)
    packed: bytes = archive.finish()
    return packed
