"""``gantry-confd`` as a process: its files, and what comes to its port."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from common.errors import NodeFailure
from tests.support.confd import Told, question
from tests.support.confd_process import CHECKOUT, KEY, PATIENCE_S, ConfdProcess, confd_process

MASTER = 3


@pytest.fixture(scope="module")
def confd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfdProcess]:
    with confd_process(tmp_path_factory.mktemp("confd")) as process:
        yield process


def becomes(confd: ConfdProcess, is_so: Callable[[Told | None], bool]) -> bool:
    """Ask who is master until the answer is as it is to be."""
    until = time.monotonic() + PATIENCE_S
    while not is_so(confd.ask(MASTER, patience_s=0.3)):
        if time.monotonic() > until:
            return False
    return True


def test_what_is_published_is_told_without_a_restart_until_it_is_withdrawn(
    confd: ConfdProcess,
) -> None:
    assert confd.ask(MASTER, patience_s=0.3) is None
    confd.publish()
    assert becomes(confd, lambda told: told == Told(0, "alpha", 42))
    confd.publish(serial=43)
    assert becomes(confd, lambda told: told == Told(0, "alpha", 43))
    confd.withdraw()
    assert becomes(confd, lambda told: told is None)


def test_a_flood_of_garbage_and_of_what_was_heard_before_is_outlived(confd: ConfdProcess) -> None:
    confd.publish()
    assert becomes(confd, lambda told: told is not None)
    random = Random(5)
    heard = question(KEY.encode(), MASTER, now=time.time(), salt="heard")
    confd.send(heard)
    assert confd.receive() is not None
    for _ in range(2000):
        confd.send(random.randbytes(random.randrange(1400)))
        confd.send(b"plj0" + random.randbytes(random.randrange(1400)))
        confd.send(heard)
    assert becomes(confd, lambda told: told == Told(0, "alpha", 42))
    assert "heard" not in confd.strays


def test_a_damaged_file_is_told_of_and_mended_by_the_next_one(
    confd: ConfdProcess, tmp_path: Path
) -> None:
    confd.publish()
    assert becomes(confd, lambda told: told == Told(0, "alpha", 42))
    damaged = tmp_path / "damaged"
    damaged.write_bytes((confd.folder / "snapshot").read_bytes()[:-10])
    damaged.rename(confd.folder / "snapshot")
    assert becomes(confd, lambda told: told == Told(1, 1, 0))
    confd.publish(serial=44)
    assert becomes(confd, lambda told: told == Told(0, "alpha", 44))


def test_a_port_that_is_taken_is_told_in_a_sentence(confd: ConfdProcess, tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: TID251 -- the program itself, and no loop here
        (sys.executable, "-m", "coordinator.confd.main", "-b", "127.0.0.1", "-p", f"{confd.port}"),
        cwd=CHECKOUT,
        env=os.environ | {"GANTRY_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NodeFailure.exit_code
    assert done.stderr == (
        f"gantry-confd: Cannot listen on 127.0.0.1 port {confd.port}: Address already in use.\n"
    )
