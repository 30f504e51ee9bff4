"""What a node has of Debian: a root file system, packed, made once for each list of packages."""

import hashlib
import re
from pathlib import Path

from deploy.uml.command import Trouble, run
from deploy.uml.place import CACHE

RELEASE = "bookworm"
PACKAGES = (
    "ca-certificates",
    "drbd-utils",
    "iproute2",
    "iputils-ping",
    "kmod",
    "lvm2",
    "netbase",
    "openssh-server",
    "python3-pip-whl",
    "python3.11",
    "qemu-system-x86",
    "qemu-utils",
    "systemd",
    "systemd-sysv",
    "udev",
)
UNREAD = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
BUILD_S = 900.0


def ensure_debian() -> tuple[Path, bool]:
    """Return a root file system as a tar archive, and whether it had to be made.

    Raises:
        Trouble: mmdebstrap failed; its last words say why.
    """
    words = (RELEASE, *PACKAGES, *UNREAD)
    archive = CACHE / f"debian-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}.tar"
    if archive.exists():
        return archive, False
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob("debian-*"):
        old.unlink()
    settings = CACHE / "apt.conf"  # proxies and trust of this machine hold for the nodes' packages
    settings.write_text(_own_settings())
    part = archive.with_suffix(".part")
    run(
        (
            "mmdebstrap", "--variant=minbase", "--mode=root", "--format=tar",
            f"--include={','.join(PACKAGES)}", f"--aptopt={settings}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNREAD),
            RELEASE, str(part), *_sources(),
        ),
        timeout_s=BUILD_S,
    )  # fmt: skip
    part.rename(archive)
    return archive, True


def _own_settings() -> str:
    dump = run(("apt-config", "dump", "Acquire"))
    return "".join(
        f"{line}\n" for line in dump.splitlines() if not re.search(r'::? "";$|^Acquire "', line)
    )


def _sources() -> list[str]:
    """Return this machine's own sources of the release: a mirror may be all it reaches."""
    wanted = ("$(ORIGIN)", "$(CODENAME)", "$(COMPONENT)", "$(REPO_URI)")
    listing = run(("apt-get", "indextargets", "--format", " ".join(wanted), "Created-By: Packages"))
    sources = {
        f"deb {uri} {suite} main"
        for origin, suite, component, uri in (line.split(" ", 3) for line in listing.splitlines())
        if origin == "Debian" and suite.startswith(RELEASE) and component == "main"
    }
    if not sources:
        raise Trouble(f"apt on this machine has no source of Debian's {RELEASE}; add one.")
    return sorted(sources)
