"""Install Gantry into the image from this checkout, the way a stranger would: deploy/install."""

import shutil
from pathlib import Path

from common.paths import Paths
from deploy.uml.command import LEASH, run
from deploy.uml.place import CACHE, CHECKOUT, SHARED

# What deploy/install reads, relative to the checkout; an image is made anew when it changes.
SOURCES = (
    "pyproject.toml", "requirements", "common", "coordinator", "noded", "systemd",
    "deploy/__init__.py", "deploy/checked-wheels", "deploy/completion", "deploy/guests",
    "deploy/install", "deploy/launchers.py", "deploy/logrotate", "deploy/manpages",
    "deploy/tell.sh", "deploy/wheelhouse",
)  # fmt: skip
WHEELS = CACHE / "wheels"  # kept: what is there is not fetched again
FETCH_S = 300.0
INSTALL_S = 300.0


def install_gantry(root: Path) -> None:
    """Install below ``root``. Packages come in as files, since nodes have no way out.

    Raises:
        Trouble: a step failed; its last words say why.
    """
    run((*LEASH, str(CHECKOUT / "deploy/wheelhouse"), str(WHEELS)), timeout_s=FETCH_S)
    checkout = root / "root/gantry"
    lay_out(checkout)
    (root / "dev/shm").mkdir(exist_ok=True)  # for the semaphores of Python's compiler
    install = ("/root/gantry/deploy/install", "--wheels", "/root/gantry/wheels")
    # The directory for temporary files that this machine names is none in there.
    chroot = ("env", "--unset=TMPDIR", "chroot", str(root))
    run((*LEASH, *chroot, *install), timeout_s=INSTALL_S)
    shutil.rmtree(checkout)
    Paths(str(root)).guest_rules.write_text(f"image {SHARED}\n")  # where stories put kernels


def lay_out(target: Path) -> None:
    """Put into a new directory what deploy/install reads, and ``WHEELS`` as ``wheels``."""
    for name in SOURCES:
        source, copy = CHECKOUT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    shutil.copytree(WHEELS, target / "wheels")
