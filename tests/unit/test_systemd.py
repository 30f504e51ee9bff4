import asyncio
import logging
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from common.log_lines import LineFormatter
from common.systemd import PINGS, JournalFormatter, Supervisor, is_journalled
from tests.support.clock import simulate


def test_nobody_is_told_where_systemd_did_not_start_us() -> None:
    async def scenario() -> None:
        supervisor = Supervisor({"WATCHDOG_USEC": "1000000"})
        supervisor.tell("READY=1")
        await supervisor.tell_alive()  # returns at once

    simulate(scenario())


def test_a_supervisor_that_has_gone_or_reads_nothing_is_no_failure(tmp_path: Path) -> None:
    with closing(Supervisor({"NOTIFY_SOCKET": str(tmp_path / "gone")})) as supervisor:
        supervisor.tell("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "deaf"))
        with closing(Supervisor({"NOTIFY_SOCKET": str(tmp_path / "deaf")})) as supervisor:
            for _ in range(10_000):  # more than its queue takes
                supervisor.tell("WATCHDOG=1")


@pytest.mark.parametrize("abstract", [False, True])
def test_words_go_out_as_one_message(tmp_path: Path, abstract: bool) -> None:
    path = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{path}" if abstract else path)
        address = f"@{path}" if abstract else path
        with closing(Supervisor({"NOTIFY_SOCKET": address})) as supervisor:
            supervisor.tell("READY=1", "STATUS=“alpha” is the master")
        assert manager.recv(1000).decode() == "READY=1\nSTATUS=“alpha” is the master"


@pytest.mark.parametrize(
    ("told", "patience_s"),
    [
        ({"WATCHDOG_USEC": "60000000"}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "our own"}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),  # meant for our parent
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_systemd_waits_for_a_word(told: dict[str, str], patience_s: float | None) -> None:
    ours = {key: str(os.getpid()) if word == "our own" else word for key, word in told.items()}
    assert Supervisor(ours).patience_s == patience_s


def test_the_watchdog_hears_from_us_several_times_in_its_patience(tmp_path: Path) -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        heard: list[float] = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(tmp_path / "notify"))
            manager.settimeout(0)
            supervisor = Supervisor(
                {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
            )
            alive = asyncio.ensure_future(supervisor.tell_alive())
            began = loop.time()
            for _ in range(4):
                await asyncio.sleep(0.1)
                assert manager.recv(100) == b"WATCHDOG=1"
                heard.append(round(loop.time() - began))
                await asyncio.sleep(30 / PINGS - 0.1)
            alive.cancel()
            supervisor.close()
        return heard

    assert simulate(scenario()) == [0, 10, 20, 30]


def test_lines_for_the_journal_begin_with_their_priority() -> None:
    formatter = JournalFormatter(LineFormatter("%(message)s"))

    def line(level: int, text: str) -> str:
        return formatter.format(logging.LogRecord("x", level, "x", 1, text, None, None))

    assert line(logging.DEBUG, "a") == "<7>a"
    assert line(logging.INFO, "a") == "<6>a"
    assert line(logging.WARNING, "first\nsecond") == "<4>first\\u000asecond"
    assert line(logging.CRITICAL, "a") == "<3>a"


def test_the_journal_is_known_by_the_number_of_its_socket() -> None:
    here = os.fstat(2)
    assert is_journalled({"JOURNAL_STREAM": f"{here.st_dev}:{here.st_ino}"})
    assert not is_journalled({"JOURNAL_STREAM": f"{here.st_dev}:{here.st_ino + 1}"})
    assert not is_journalled({})
