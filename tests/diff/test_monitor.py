"""Our agent, read by Debian's hbal and by ours."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from noded.monitor.main import PORT, Monitor, Visitors
from tests.support.namespace import in_new_network

# Two names of one machine, whose only agent then answers for both. The second node has all the
# secondaries only, so that a share of its load goes to nobody.
CLUSTER = """\
group|u1|preferred||

localhost|4096|0|3840|95367|92000|4|N|u1|1
127.0.0.1|4096|0|4096|95367|95367|4|N|u1|1

one|128|1000|1|running|Y|localhost|127.0.0.1|drbd||1
two|128|1000|3|running|Y|localhost|127.0.0.1|drbd||1

"""
DEBIAN = "/usr/bin/hbal"
OURS = str(Path(sys.executable).parent / "hbal")


def loads(output: str) -> list[str]:
    """The column lCpu of the table of nodes at the start."""
    lines = output.splitlines()
    at = lines.index("Initial cluster status:") + 1
    column = lines[at].split().index("lCpu") - 1  # the flag before the name may be empty
    return [line.split()[column] for line in lines[at + 1 : at + 3]]


def test_both_programs_read_the_load_of_a_node_from_its_agent(tmp_path: Path) -> None:
    """The agent takes two samples and no more, so that both are told the same."""
    (tmp_path / "cluster.data").write_text(CLUSTER)
    monitor = Monitor(tmp_path)
    for ticks in (100, 103):
        (tmp_path / "stat").write_text(f"cpu  {ticks} 0 0 0 0 0 0 0\ncpu0 {ticks} 0 0 0 0 0 0 0\n")
        monitor.sample()

    async def scenario() -> tuple[float, list[list[str]]]:
        up = await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "up")
        assert await up.wait() == 0
        visitors = Visitors(monitor.handle)
        server = await asyncio.get_running_loop().create_server(visitors, "127.0.0.1", PORT)
        try:
            report = await _fetch("/1/report/default/cpu-avg-load")
            tables = [await _table(each, tmp_path / "cluster.data") for each in (DEBIAN, OURS)]
        finally:
            server.close()
            await visitors.shutdown(0)
        return report["data"]["cpu_total"], [loads(table) for table in tables]

    total, (theirs, ours) = in_new_network(scenario)
    assert ours == theirs
    assert total > 0
    assert float(ours[0]) == pytest.approx(total, abs=0.001)


async def _fetch(path: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def _table(program: str, cluster: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        program, "-t", str(cluster), "--mond=yes", "-p", stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    return (out + err).decode()
