"""The nodes' kernel: one of Debian's user-mode Linuxes that starts programs on this processor."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deploy.uml.command import Trouble, run
from deploy.uml.fetch import fetch
from deploy.uml.place import CACHE
from deploy.uml.trial import why_not

UNPACKED = "kernel-"  # and the name of Debian's release

# Of 105 MB of modules: what LVM, DRBD, guests' networks, systemd and the faults need.
MODULES = frozenset({
    "autofs4", "binfmt_misc", "bridge", "dm-delay", "dm-flakey", "dm-mod", "dm-snapshot",
    "dm-thin-pool", "drbd", "fuse", "ipv6", "loop", "nbd", "openvswitch", "overlay", "sch_netem",
    "tun", "veth",
})  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A release's user-mode Linux; it is unpacked, not installed."""

    release: str
    libc: bool = False  # it needs the C library of its own release
    parameters: tuple[str, ...] = ()  # for every node's command line

    @property
    def directory(self) -> Path:
        return CACHE / f"{UNPACKED}{self.release}"

    @property
    def program(self) -> Path:
        return self.directory / "usr/bin/linux.uml"

    @cached_property
    def version(self) -> str:
        """The kernel's version, such as 6.1.176."""
        (directory,) = (self.directory / "usr/lib/uml/modules").iterdir()
        return directory.name

    def why_not(self) -> str:
        """Say why it cannot run on this machine; empty if it can, which is tried."""
        return why_not(self.program, self.parameters)

    def ensure_fetched(self, work: Path, say: Callable[[str], None]) -> None:
        """Fetch it, by way of ``work``, unless it is there.

        Raises:
            Trouble: Debian's packages cannot be had.
        """
        if self.program.exists():
            return
        part = work / self.directory.name
        fetch(("user-mode-linux", *(("libc6",) if self.libc else ())), self.release, part)
        program = part / self.program.relative_to(self.directory)
        if not program.exists():
            raise Trouble(f"The user-mode-linux of Debian's {self.release} has no {program.name}.")
        if self.libc:
            # It starts itself anew by its own name, so that it can't be started by the loader's.
            loader = self.directory / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
            libraries = "$ORIGIN/../lib/x86_64-linux-gnu"
            run(
                (
                    "patchelf",
                    "--set-interpreter",
                    str(loader),
                    "--set-rpath",
                    libraries,
                    str(program),
                )
            )
        part.rename(self.directory)
        say(f"fetched user-mode Linux {self.version} of Debian's {self.release}")

    def copy_modules(self, root: Path) -> None:
        """Put the modules that nodes need, and those that these need, into a root file system."""
        source = self.directory / "usr/lib/uml/modules" / self.version
        target = root / "lib/modules" / self.version
        target.mkdir(parents=True)
        for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
            shutil.copyfile(source / name, target / name)
        for line in (source / "modules.dep").read_text().splitlines():
            module, _, needed = line.partition(":")
            if Path(module).name.split(".")[0] not in MODULES:
                continue
            for path in (module, *needed.split()):
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / path, target / path)
        run(("depmod", "--basedir", str(root), self.version))


# Debian 12's has a fixed buffer for the processor's registers, which is too small where there is
# AMX: no program starts then, and the kernel ends at its first. Since 6.13 its size is asked for.
# The newer one's io_uring brings down its memory management within seconds of libuv's using it;
# and it runs programs a quarter faster by seccomp than by ptrace, but does not choose so itself.
KERNELS = (
    Kernel("bookworm"),
    Kernel("unstable", libc=True, parameters=("sysctl.kernel.io_uring_disabled=2", "seccomp=on")),
)


def choose(work: Path, say: Callable[[str], None]) -> Kernel:
    """Return the first kernel that runs on this machine; it is fetched by way of ``work``.

    ``GANTRY_LAB_KERNEL`` names the only release that is to be tried.

    Raises:
        Trouble: none runs, or can be had; says why for each.
    """
    reasons = []
    for kernel in _considered():
        try:
            kernel.ensure_fetched(work, say)
            reason = kernel.why_not()
        except Trouble as error:
            reason = str(error)
        if not reason:
            return kernel
        reasons.append(f"that of Debian's {kernel.release}: {reason}")
        say(f"user-mode Linux does not run here; {reasons[-1]}")
    raise Trouble(f"User-mode Linux does not run on this machine; {'; '.join(reasons)}")


def of_image(image: Path) -> Kernel:
    """Return the kernel whose modules are in an image, by the image's name.

    Raises:
        Trouble: it is not there any more.
    """
    for kernel in KERNELS:
        if f"-{kernel.release}-" in image.name and kernel.program.exists():
            return kernel
    raise Trouble(f"The kernel of {image} is not there any more; “deploy/lab clean”, then “up”.")


def _considered() -> Iterator[Kernel]:
    wanted = os.environ.get("GANTRY_LAB_KERNEL")
    known = [kernel.release for kernel in KERNELS]
    if wanted and wanted not in known:
        raise Trouble(f"GANTRY_LAB_KERNEL={wanted}: there are {' and '.join(known)}.")
    return (kernel for kernel in KERNELS if wanted in (None, "", kernel.release))
