"""What a node has of Debian: a root file system, packed, made once for each list of packages."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from deploy.uml.command import LEASH, run
from deploy.uml.fetch import sources
from deploy.uml.place import CACHE, DEBIAN_12

PACKAGES = (
    "ca-certificates",
    "drbd-utils",
    "iproute2",
    "iputils-ping",
    "kmod",
    "lvm2",
    "netbase",
    "nftables",
    "openssh-server",
    "openvswitch-switch",
    "python3-pip-whl",
    "python3.11",
    "qemu-system-x86",
    "qemu-utils",
    "systemd",
    "systemd-sysv",
    "udev",
)
UNREAD = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
BUILD_S = 600.0


def archive() -> Path:
    """Return where the root file system is, as a tar archive, once it is made."""
    words = (DEBIAN_12, *PACKAGES, *UNREAD)
    return CACHE / f"debian-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}.tar"


def ensure_debian(work: Path, say: Callable[[str], None]) -> None:
    """Make the archive, in ``work``, unless it is there.

    Raises:
        Trouble: mmdebstrap failed; its last words say why.
    """
    if archive().exists():
        return
    say("packing Debian for the nodes; that takes some minutes, once")
    for old in CACHE.glob("debian-*"):
        old.unlink()
    settings = work / "apt.conf"  # proxies and trust of this machine hold for the nodes' packages
    settings.write_text(_own_settings())
    part = work / archive().name
    run(
        (
            *LEASH,
            "env",
            f"TMPDIR={work}",
            "mmdebstrap",
            "--variant=minbase",
            "--mode=root",
            "--format=tar",
            f"--include={','.join(PACKAGES)}",
            f"--aptopt={settings}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNREAD),
            DEBIAN_12,
            str(part),
            *sources(),
        ),
        timeout_s=BUILD_S,
    )
    say(f"packed Debian for the nodes ({part.stat().st_size >> 20} MiB)")
    part.rename(archive())


def _own_settings() -> str:
    dump = run(("apt-config", "dump", "Acquire"))
    return "".join(
        f"{line}\n" for line in dump.splitlines() if not re.search(r'::? "";$|^Acquire "', line)
    )
