"""The nodes' system disk: Debian, the nodes' kernel modules, a few files, and Gantry installed.

It is one file that all nodes share; what a node writes goes to a file of its own.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from deploy.uml import room
from deploy.uml.cache import making
from deploy.uml.command import LEASH, run
from deploy.uml.debian import archive, ensure_debian
from deploy.uml.install import SOURCES, install_gantry
from deploy.uml.kernel import Kernel, choose
from deploy.uml.place import (
    CACHE,
    CHECKOUT,
    FILE_DISKS,
    HOST_ADDRESS,
    NAMES,
    SHARED,
    Place,
)

FILES = Path(__file__).parent / "files"
SIZE_MIB = 4096  # sparse
BUILD_S = 120.0

# They cost time at each start and serve nobody here. The kernel itself makes device files, so that
# udev has to deal only with devices that come later.
MASKED = (
    "apt-daily-upgrade.timer", "apt-daily.timer", "blk-availability.service",
    "dev-hugepages.mount", "dev-mqueue.mount", "dpkg-db-backup.timer", "drbd.service",
    "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "getty-static.service",
    "getty@tty1.service", "lvm2-lvmpolld.socket", "lvm2-monitor.service", "sys-kernel-config.mount",
    "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "systemd-binfmt.service",
    "systemd-firstboot.service", "systemd-logind.service", "systemd-machine-id-commit.service",
    "systemd-networkd.service", "systemd-networkd.socket",
    "systemd-pstore.service", "systemd-random-seed.service", "systemd-remount-fs.service",
    "systemd-timesyncd.service", "systemd-udev-trigger.service", "systemd-update-utmp.service",
)  # fmt: skip


def ensure_image(place: Place, say: Callable[[str], None]) -> Path:
    """Return the image, made anew if what it is made of has changed.

    Raises:
        Trouble: something it is made of cannot be had, or user-mode Linux does not run here.
    """
    with making(say) as work:
        kernel = choose(work, say)
        _ensure_key(place)
        image = CACHE / f"image-{kernel.release}-{_digest(place, kernel)}.ext4"
        if not image.exists():
            room.check_room_for_image()
            ensure_debian(work, say)
            say("installing Gantry into an image")
            _drop_unused()
            _make(work / image.name, work / "root", place, kernel)
            (work / image.name).rename(image)
            say(f"the image is ready ({image.stat().st_blocks >> 11} MiB)")
    return image


def _make(image: Path, root: Path, place: Place, kernel: Kernel) -> None:
    root.mkdir(mode=0o755)
    run(("tar", "--extract", "--file", str(archive()), "--directory", str(root)), timeout_s=BUILD_S)
    kernel.copy_modules(root)
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    _configure(root, place)
    install_gantry(root)
    run(
        (
            *LEASH,
            "mke2fs",
            "-q",
            "-t",
            "ext4",
            "-L",
            "system",
            "-d",
            str(root),
            str(image),
            f"{SIZE_MIB}M",
        ),
        timeout_s=BUILD_S,
    )


def _configure(root: Path, place: Place) -> None:
    hosts = ["127.0.0.1 localhost", f"{HOST_ADDRESS} host"]
    hosts += [f"{spot.address} {spot.name}" for spot in place.spots(len(NAMES))]
    (root / "etc/hosts").write_text("\n".join(hosts) + "\n")
    (root / "etc/fstab").write_text("")
    (root / "etc/hostname").unlink(missing_ok=True)  # the kernel's command line names the node
    (root / "etc/resolv.conf").write_text("")  # nodes see one another and nothing else
    (root / "etc/machine-id").write_text("")  # the kernel's command line tells
    for directory in (SHARED, FILE_DISKS):
        (root / directory.lstrip("/")).mkdir()
    authorized = root / "root/.ssh/authorized_keys"
    authorized.parent.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(place.key.with_suffix(".pub"), authorized)
    run(("systemctl", f"--root={root}", "mask", *MASKED))
    run(("systemctl", f"--root={root}", "enable", "lab-node.service"))
    # It would cost each start seconds: who wants Open vSwitch on a node starts it there.
    run(("systemctl", f"--root={root}", "disable", "openvswitch-switch.service"))


def _drop_unused() -> None:
    """Delete the images of which no lab's nodes hold the differences."""
    used = {link.resolve() for link in CACHE.glob("labs/*")}
    for image in CACHE.glob("image-*"):
        if image not in used:
            image.unlink()


def _ensure_key(place: Place) -> None:
    if not place.key.exists():
        run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(place.key)))


def _digest(place: Place, kernel: Kernel) -> str:
    """Return a name for all that goes into an image."""
    digest = hashlib.sha256(f"{archive().name} {kernel.version}".encode())
    digest.update(place.key.with_suffix(".pub").read_bytes())
    ours = Path(__file__).parent
    makers = (FILES, ours / "image.py", ours / "install.py", ours / "kernel.py")
    for top in (*makers, *(CHECKOUT / name for name in SOURCES)):
        for path in sorted([top] if top.is_file() else top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(CHECKOUT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
