"""A guest that says what an installed image has brought it: its disk, its name and its key."""

from pathlib import Path

from tests.support.guest_builder import builder

MARK = b"this is the image\n"  # what an image begins with
LAST = "that is all"  # what it says at the end
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


class NoKernel(Exception):
    """There is no kernel of which to make guests; a sentence."""


def put_image_guest(directory: Path) -> None:
    """Write its ``vmlinuz`` and ``initrd``; it mounts its second disk and says what is on it.

    Raises:
        NoKernel: this machine has none for it; says what to do.
    """
    own = builder()
    try:
        kernel, modules = own.find_kernel(own.SETUP_KERNEL)
    except own.Unbuildable as error:
        raise NoKernel(str(error)) from error
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
    directory.mkdir(exist_ok=True)
    (directory / "vmlinuz").write_bytes(kernel.read_bytes())
    (directory / "initrd").write_bytes(archive.finish())
