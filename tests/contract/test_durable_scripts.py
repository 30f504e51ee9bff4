"""What scripts write gets to the disk before they count as ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.messages import from_json, to_json
from noded.operating_systems.durable import FAILED, make_durable
from noded.operating_systems.home import Result
from noded.operating_systems.orders import Task


def test_all_disks_are_written_through(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    assert make_durable((7, 8), log=-1) == 0
    assert synced == [7, 8]


def test_what_does_not_get_to_the_disk_has_failed_and_the_log_says_so(tmp_path: Path) -> None:
    reading, writing = os.pipe()  # of which the kernel refuses to sync anything
    path = tmp_path / "log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        assert make_durable((writing,), log) == FAILED
    finally:
        for descriptor in (reading, writing, log):
            os.close(descriptor)
    assert path.read_text() == "What it wrote does not get to the disk: Invalid argument.\n"


def test_a_script_that_reads_has_ended_well_when_that_is_on_the_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    stream, ending, result = (tmp_path / name for name in ("stream", "ending", "result"))
    os.mkfifo(stream)
    ending.touch()
    reading, writing = os.pipe()  # in the place of a disk that fails
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    letter = os.memfd_create("task")
    task = Task(
        argv=("/bin/true",), directory="/", environment={}, disks=(writing,), log=log,
        reads=str(stream), ending=str(ending), result=str(result),
    )  # fmt: skip
    os.write(letter, to_json(task))
    program = [sys.executable, "-P", "-m", "noded.operating_systems.worker", str(tmp_path)]
    with subprocess.Popen([*program, str(letter)], pass_fds=(writing, log, letter)) as worker:
        os.close(os.open(stream, os.O_WRONLY))
        assert worker.wait(30.0) == 0
    for descriptor in (reading, writing, log, letter):
        os.close(descriptor)
    assert ending.read_text() == str(FAILED)
    assert from_json(result.read_bytes(), Result, what="a result").status == FAILED
