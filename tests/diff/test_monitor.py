"""Our agent, read by Debian's hbal and by ours."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

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
    (tmp_path / "cluster.data").write_text(CLUSTER)

    async def scenario() -> tuple[list[str], list[str], float]:
        up = await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "up")
        assert await up.wait() == 0
        agent = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "noded.monitor.main", "--every", "0.1", stderr=PIPE
        )
        try:
            assert agent.stderr
            assert b"listens" in await agent.stderr.readline()
            report = await _fetch("/1/report/default/cpu-avg-load")
            while report["data"]["cpu_number"] != os.cpu_count():  # two samples have to be there
                report = await _fetch("/1/report/default/cpu-avg-load")
            tables = [
                await _table(program, tmp_path / "cluster.data") for program in (DEBIAN, OURS)
            ]
            return loads(tables[0]), loads(tables[1]), report["data"]["cpu_total"]
        finally:
            agent.terminate()
            await agent.wait()

    theirs, ours, total = in_new_network(scenario)
    # The load is sampled anew in between; it is an average over all that was seen.
    assert [float(one) for one in ours] == pytest.approx([float(one) for one in theirs], abs=0.2)
    assert float(ours[0]) == pytest.approx(total, abs=0.2)
    assert float(ours[0]) > 0


async def _fetch(path: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", 1815)
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
