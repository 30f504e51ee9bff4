"""The nodes' kernel: Debian's user-mode Linux, unpacked, not installed."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from deploy.uml.command import Trouble, run
from deploy.uml.place import CACHE

PACKAGE = "user-mode-linux"
KERNEL = CACHE / "kernel"
PROGRAM = KERNEL / "usr/bin/linux.uml"
DOWNLOAD_S = 300.0
TRIAL_S = 30.0

# Of 105 MB of modules: what LVM, DRBD, guests' networks, systemd and the faults need.
MODULES = frozenset({
    "autofs4", "binfmt_misc", "bridge", "dm-delay", "dm-flakey", "dm-mod", "dm-snapshot",
    "dm-thin-pool", "drbd", "fuse", "ipv6", "loop", "nbd", "overlay", "sch_netem", "tun", "veth",
})  # fmt: skip


def ensure_kernel(work: Path, say: Callable[[str], None]) -> None:
    """Fetch the kernel, by way of ``work``, unless it is there.

    Raises:
        Trouble: Debian's package cannot be had.
    """
    if PROGRAM.exists():
        return
    part = work / KERNEL.name
    part.mkdir()
    fetch = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", PACKAGE)
    run(("env", "-C", str(part), *fetch), timeout_s=DOWNLOAD_S)
    (package,) = part.glob("*.deb")
    run(("dpkg-deb", "--extract", str(package), str(part)))
    package.unlink()
    if not (part / PROGRAM.relative_to(KERNEL)).exists():
        raise Trouble(f"Debian's package {PACKAGE} has no {PROGRAM.relative_to(KERNEL)}.")
    part.rename(KERNEL)
    say(f"fetched Debian's user-mode Linux {version()}")


def why_not() -> str:
    """Say why the kernel cannot run on this machine; empty if it can, which is tried."""
    with tempfile.TemporaryDirectory() as directory:
        words = (str(PROGRAM), "mem=64M", f"uml_dir={directory}/", "con=null", "con0=null,fd:1",
                 "root=/dev/ubda", "panic=-1", "noreboot")  # fmt: skip
        try:
            done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", timeout=TRIAL_S, check=False)  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    # Without a disk, it gets as far as looking for one.
    said = done.stdout + done.stderr
    if "Unable to mount root fs" in said:
        return ""
    return said.strip()[-300:] or f"It ended at once, with {done.returncode}, and said nothing."


def version() -> str:
    """Return the kernel's version, such as 6.1.176."""
    (directory,) = (KERNEL / "usr/lib/uml/modules").iterdir()
    return directory.name


def copy_modules(root: Path) -> None:
    """Put the modules that nodes need, and those that these need, into a root file system."""
    source = KERNEL / "usr/lib/uml/modules" / version()
    target = root / "lib/modules" / version()
    target.mkdir(parents=True)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copyfile(source / name, target / name)
    for line in (source / "modules.dep").read_text().splitlines():
        module, _, needed = line.partition(":")
        if Path(module).stem not in MODULES:
            continue
        for path in (module, *needed.split()):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, target / path)
    run(("depmod", "--basedir", str(root), version()))
