"""Locking is for good, so it is tried in processes of its own."""

import resource
import subprocess
import sys

import pytest

LOCK = """
import logging, sys
logging.basicConfig(stream=sys.stderr, format="%(message)s")
from noded.memory_lock import lock_memory, prepare_memory
prepare_memory()
print(lock_memory())
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmLck")][0])
"""


def run(*, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))

    drop = ("setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock")
    return subprocess.run(  # noqa: TID251 -- no loop here to block
        [*(drop if limit is not None else ()), sys.executable, "-c", LOCK],
        capture_output=True, text=True, check=False, preexec_fn=restrict,
    )  # fmt: skip


def test_everything_is_locked_where_it_may_be() -> None:
    done = run()
    locked, kib = done.stdout.split()
    if locked == "False":
        pytest.skip("this machine forbids it: " + done.stderr)
    assert int(kib) > 1000


@pytest.mark.parametrize("limit", [0, 64 << 10, 4 << 20])
def test_a_limit_is_told_with_its_remedy_and_is_no_obstacle(limit: int) -> None:
    done = run(limit=limit)
    assert done.stdout.split() == ["False", "0"]
    assert "LimitMEMLOCK=infinity" in done.stderr
    assert "ulimit -l unlimited" in done.stderr
    assert done.returncode == 0
