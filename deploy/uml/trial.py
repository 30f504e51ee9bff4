"""Does a kernel run on this machine? It has to start a program in a node, and to end in order."""

import shutil
import subprocess
import tempfile
from pathlib import Path

TRIAL_S = 30.0
SHELL = Path("/bin/busybox")  # linked statically, by Debian's busybox-static
PROOF = "A program runs."

INIT = f"""#!/bin/busybox sh
echo "{PROOF}"
exec /bin/busybox poweroff -f
"""


def why_not(program: Path, parameters: tuple[str, ...]) -> str:
    """Say why a kernel cannot run nodes here; empty if it can, which is tried.

    Looking for a root file system is not enough: on a processor with more registers than a
    kernel has room for, it is the first program that ends it.
    """
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        (root / "bin").mkdir(parents=True)
        init = root / "init"
        init.write_text(INIT)
        init.chmod(0o755)
        words = (
            str(program),
            "mem=64M",
            f"uml_dir={directory}/",
            "con=null",
            "con0=null,fd:1",
            "rootfstype=hostfs",
            f"rootflags={root}",
            "rw",
            "init=/init",
            "panic=-1",
            "noreboot",
            *parameters,
        )
        try:
            shutil.copy(SHELL, root / "bin")
            done = subprocess.run(
                words,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=TRIAL_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"No program has run in it after {TRIAL_S:g} s."
        except OSError as error:
            return str(error)
    said = done.stdout + done.stderr
    if PROOF in said.splitlines():
        return ""
    end = " ".join(said.split())[-300:] or f"It ended with {done.returncode} and said nothing."
    return f"It starts no program. {end}"
