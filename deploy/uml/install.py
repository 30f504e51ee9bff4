"""Install Gantry into the image from this checkout, the way a stranger would: deploy/install."""

import shutil
from pathlib import Path

from deploy.uml.command import run
from deploy.uml.place import CACHE, CHECKOUT

# What deploy/install reads, relative to the checkout; an image is made anew when it changes.
SOURCES = (
    "pyproject.toml", "requirements", "common", "coordinator", "noded", "systemd",
    "deploy/__init__.py", "deploy/install", "deploy/launchers.py", "deploy/manpages",
    "deploy/tell.sh", "deploy/wheelhouse",
)  # fmt: skip
FETCH_S = 300.0
INSTALL_S = 300.0


def install_gantry(root: Path) -> None:
    """Install below ``root``. Packages come in as files, since nodes have no way out.

    Raises:
        Trouble: a step failed; its last words say why.
    """
    wheels = CACHE / "wheels"  # kept: what is there is not fetched again
    run((str(CHECKOUT / "deploy/wheelhouse"), str(wheels)), timeout_s=FETCH_S)
    checkout = root / "root/gantry"
    for name in SOURCES:
        source, target = CHECKOUT / name, checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    shutil.copytree(wheels, checkout / "wheels")
    (root / "dev/shm").mkdir(exist_ok=True)  # for the semaphores of Python's compiler
    install = ("/root/gantry/deploy/install", "--wheels", "/root/gantry/wheels")
    run(("chroot", str(root), *install), timeout_s=INSTALL_S)
    shutil.rmtree(checkout)
