"""A ``gantry-rapi`` as a process of its own, beside a socket that a coordinator listens on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.paths import Paths

CHECKOUT = Path(__file__).parents[2]
USERS = "# who may what\nreader secret read\nwriter {cleartext}secret write\n"
READER, WRITER = ("reader", "secret"), ("writer", "secret")


@dataclass(frozen=True)
class RapiProcess:
    """``paths`` are those below its root."""

    port: int
    paths: Paths
    pid: int


@contextmanager
def rapi_process(root: Path, luxi: Path, *options: str) -> Iterator[RapiProcess]:
    """Run it for the length of a block, until it is told to stop.

    Args:
        root: takes the place of ``/``.
        luxi: the socket of a coordinator, perhaps of one to come.
        options: for its command line.
    """
    paths = Paths(str(root))
    paths.luxi_socket.parent.mkdir(parents=True, exist_ok=True)
    if not paths.luxi_socket.exists():
        paths.luxi_socket.symlink_to(luxi)
    paths.rapi_users.parent.mkdir(parents=True, exist_ok=True)
    paths.rapi_users.write_text(USERS)
    command = (sys.executable, "-m", "coordinator.rapi.main", "-b", "127.0.0.1", "-p", "0")
    process = subprocess.Popen(
        (*command, *options),
        cwd=CHECKOUT,
        env=os.environ | {"GANTRY_ROOT": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        yield RapiProcess(int(ready.rsplit(maxsplit=1)[-1]), paths, process.pid)
    finally:
        process.terminate()
        process.stdout.close()
        status = process.wait(30)
    assert status == 0
