"""A guest that tells again and again which disks it sees, and how large they are."""

from deploy.uml.lab import Lab
from deploy.uml.place import SHARED
from tests.support.guest_builder import builder

DIRECTORY = "sizes-guest"  # of the directory that nodes share
PARAMETERS = f"kernel_path={SHARED}/{DIRECTORY}/vmlinuz,initrd_path={SHARED}/{DIRECTORY}/initrd"
INIT = """#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do insmod "/modules/$module"; done </modules/order
for events in /dev/input/event*; do
    { head -c 1 "$events" >/dev/null && poweroff -f; } &
done
number=0
while :; do
    number=$((number + 1))
    sizes=
    for disk in /sys/block/vd*; do
        sizes="$sizes ${disk##*/}=$(($(cat "$disk/size") / 2048))M"
    done
    echo "look $number:$sizes."
    /bin/busybox sleep 1
done
"""


def put_files(lab: Lab) -> None:
    """Have its kernel and its programs where all nodes see them; see ``PARAMETERS``."""
    build = builder()
    kernel, modules = build.find_kernel(build.SETUP_KERNEL)
    files = lab.place.shared / DIRECTORY
    files.mkdir(exist_ok=True)
    (files / "vmlinuz").write_bytes(kernel.read_bytes())
    own = build.Archive()
    own.file("init", INIT.encode(), executable=True)
    # The kernel unpacks one archive after the other; what comes last counts.
    (files / "initrd").write_bytes(build.make_initrd(modules) + own.finish())
