"""Processes that noded starts and that outlive it."""

import asyncio
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from noded.system import process
from noded.system.process import PF_EXITING, find, start

PF_KTHREAD = 0x200000  # a thread of the kernel, which has no memory of its own either
TIMES = 200  # that a program is started: what it shows of itself comes a moment later


@pytest.fixture
def unwanted() -> int:
    """Leave a descriptor open that whoever is started would get, as libraries do."""
    return os.open("/dev/zero", os.O_RDONLY)


def test_a_process_gets_the_descriptors_it_is_handed_and_no_others(
    tmp_path: Path, unwanted: int
) -> None:
    wanted, log = os.open("/dev/full", os.O_RDONLY), tmp_path / "log"
    os.set_inheritable(unwanted, True)  # noqa: FBT003 -- its only way
    try:
        with start(("ls", "-l", "/proc/self/fd"), log, [wanted]) as listing:
            asyncio.run(listing.ended())
    finally:
        os.close(wanted)
        os.close(unwanted)
    said = log.read_text(encoding="utf-8")
    assert f"{wanted} -> /dev/full" in said
    assert "/dev/zero" not in said


# Its first thread ends and another goes on, as in a QEMU that was killed and waits for a disk.
HEADLESS = """
import ctypes, os, pathlib, sys, threading
def go_on():
    while pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        os.sched_yield()
    print("headless", flush=True)
    sys.stdin.read()
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "not noted"])
def test_a_process_is_found_until_its_last_thread_has_ended(tmp_path: Path, is_noted: bool) -> None:
    pid_file, mark = tmp_path / "pid", os.fsencode(tmp_path)
    argv = (sys.executable, "-c", HEADLESS, str(tmp_path))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        assert started.stdout.readline() == b"headless\n"
        if is_noted:
            pid_file.write_text(f"{started.pid}\n")
        found = find(pid_file, lambda arguments: mark in arguments)
        assert found is not None
        with found:
            assert found.pid == started.pid
            assert find(pid_file, lambda arguments: b"another" in arguments) is None
            started.stdin.close()
            assert select.select([started.stdout], [], [])[0]
            asyncio.run(found.ended())
        assert find(pid_file, lambda arguments: mark in arguments) is None


def test_a_process_is_found_while_it_has_files_open_though_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as started:
        pid_file.write_text(f"{started.pid}\n")
        told = tmp_path / str(started.pid)
        told.mkdir()
        (told / "cmdline").touch()
        monkeypatch.setattr(process, "PROC", tmp_path)
        for flags, is_ending in {PF_KTHREAD: False, PF_EXITING: True}.items():
            (told / "stat").write_text(f"{started.pid} (a) b) D 1 1 1 0 -1 {flags} 0 0")
            found = find(pid_file, lambda _: False)
            assert (found is not None) == is_ending
            if found:
                with found:
                    assert found.pid == started.pid
    assert find(pid_file, lambda _: False) is None


def test_what_was_started_is_found_from_then_on(tmp_path: Path) -> None:
    pid_file, mark = tmp_path / "pid", os.fsencode(tmp_path)
    processors = os.sched_getaffinity(0)

    async def scenario() -> None:
        for _ in range(TIMES):
            with start(("tail", "-f", "/dev/null", str(tmp_path)), tmp_path / "log") as started:
                pid_file.write_text(str(started.pid))
                found = find(pid_file, lambda arguments: mark in arguments)
                await started.kill()
            assert found is not None
            with found:
                assert found.pid == started.pid

    # Where there is but one, we come first now and then, just when the other has its memory.
    os.sched_setaffinity(0, {min(processors)})
    try:
        asyncio.run(scenario())
    finally:
        os.sched_setaffinity(0, processors)
