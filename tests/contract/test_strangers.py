"""Strangers cost nothing: whoever comes to a port, those who are known are answered."""

import asyncio
from pathlib import Path

import pytest

from tests.support.besieged import (
    Siege,
    besiege,
    candidate,
    joiner,
    monitor_in_process,
    noded_in_process,
    reader,
)
from tests.support.https_node import TestCluster
from tests.support.namespace import in_new_network

DAEMONS = ("noded", "noded of no cluster", "monitor")
COUNT, AT_ONCE = 780, 130
MOST_GROWTH_MIB = 10.0
LIMIT_S = 60.0


async def besieged(root: Path, daemon: str, count: int, at_once: int) -> Siege:
    """Send strangers to one kind of daemon, in a network where nobody else is."""
    up = await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "up")
    assert await up.wait() == 0
    if daemon == "monitor":
        async with monitor_in_process(root, 1815) as monitor:
            return await besiege(monitor, reader(monitor), count, at_once=at_once, how="plain")
    async with noded_in_process(root) as noded:
        if daemon == "noded of no cluster":
            return await besiege(noded, joiner(noded), count, at_once=at_once)
        cluster = TestCluster(root / "cluster")
        await cluster.join(noded, "beta")
        regular = str(cluster.identity("gamma"))
        async with candidate(noded, cluster) as ask:
            return await besiege(noded, ask, count, at_once=at_once, how=regular)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_call_is_answered_and_memory_stays_while_strangers_come(
    tmp_path: Path, daemon: str
) -> None:
    async def scenario() -> Siege:
        async with asyncio.timeout(LIMIT_S):
            return await besieged(tmp_path, daemon, COUNT, AT_ONCE)

    siege = in_new_network(scenario)
    assert len(siege.took_s) > 10
    assert siege.grown_mib < MOST_GROWTH_MIB
