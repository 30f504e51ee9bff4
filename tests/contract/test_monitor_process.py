"""``gantry-monitor`` as a process: what it tells of the machine that this test runs on."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from common.exposition import MEDIA
from noded.monitor.main import PORT
from tests.support.besieged import monitor_in_process
from tests.support.namespace import in_new_network
from tests.support.rest import Answer, parse_answer


async def ask(path: str) -> Answer:
    stream, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    answer = parse_answer(await stream.read())
    writer.close()
    await writer.wait_closed()
    return answer


def asked(root: Path, *paths: str) -> list[Answer]:
    """Ask one agent, in a network where nobody else is."""

    async def scenario() -> list[Answer]:
        up = await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "up")
        assert await up.wait() == 0
        async with monitor_in_process(root, PORT):
            return [await ask(path) for path in paths]

    return in_new_network(scenario)


def test_metrics_tell_of_this_machine(tmp_path: Path) -> None:
    (answer,) = asked(tmp_path, "/metrics")
    assert (answer.status, answer.headers["Content-Type"]) == (200, MEDIA)
    lines = answer.text.decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert len(told) == sum(not line.startswith("#") for line in lines)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert float(told['gantry_node_memory_bytes{kind="MemTotal"}']) == total
    assert float(told['gantry_node_load{minutes="1"}']) >= 0
    assert 1e6 < float(told["process_resident_memory_bytes"]) < 1e9
    assert float(told["process_cpu_seconds_total"]) > 0


def test_reports_tell_of_its_block_devices(tmp_path: Path) -> None:
    listed, everything, disks, nowhere = asked(
        tmp_path,
        "/1/list/collectors",
        "/1/report/all",
        "/1/report/storage/diskstats",
        "/1/report/storage/nope",
    )
    assert nowhere.status == 404
    names = [name for name, *_ in listed.value]
    assert names[:2] == ["cpu-avg-load", "diskstats"]
    assert [each["name"] for each in everything.value] == names
    report: dict[str, Any] = json.loads(disks.text)
    kernel = Path("/proc/diskstats").read_text().splitlines()
    assert [each["name"] for each in report["data"]] == [line.split()[2] for line in kernel]
