"""What befalls nodes while an instance goes from one to another."""

import asyncio
from enum import StrEnum

from common.names import InstanceId, JobId
from noded.hypervisor.fake_guest import Phase
from tests.support.cluster import SimulatedCluster

LOOK_EVERY_S = 0.01
CLOSELY_S, SELDOM_S = 10.0, 0.5  # for how long, and how often afterwards
HANGS_S = 100.0  # longer than anybody waits for an answer, or for a transfer that stands still


class Mishap(StrEnum):
    NONE = "fine"
    HANGS = "hangs"
    BLINKS = "hangs for a moment"
    LOSES_POWER = "loses power"
    NODED = "loses its noded"
    CUT_OFF = "is cut off"


async def reaches(cluster: SimulatedCluster, source: str, number: JobId, phase: Phase) -> None:
    """Return when a move has come so far, or is over: its last step takes but a moment."""
    uuid, guests = cluster.config.instance("web1").uuid, cluster.machines[source].guests
    while (reached := guests.phase(InstanceId(uuid))) is None or reached < phase:
        job = cluster.master.running.queue.find(number)
        if job is None or job.status.is_final:
            return
        await asyncio.sleep(LOOK_EVERY_S)


async def never_twice(cluster: SimulatedCluster) -> None:
    uuid, began = InstanceId(cluster.config.instance("web1").uuid), cluster.now()
    while True:
        where = [name for name, each in cluster.machines.items() if each.guests.lives(uuid)]
        assert len(where) < 2, f"web1 runs on {' and '.join(where)}"
        await asyncio.sleep(LOOK_EVERY_S if cluster.now() < began + CLOSELY_S else SELDOM_S)


async def befall(cluster: SimulatedCluster, name: str, mishap: Mishap) -> None:
    """Have something happen to a node, and pass."""
    machine, uuid = cluster.machines[name], InstanceId(cluster.config.instance("web1").uuid)
    match mishap:
        case Mishap.NONE:
            pass
        case Mishap.HANGS | Mishap.BLINKS:
            if not machine.guests.has(uuid):
                return
            machine.guests.hang(uuid)
            await asyncio.sleep(HANGS_S if mishap is Mishap.HANGS else 1.0)
            if machine.guests.has(uuid):
                machine.guests.wake(uuid)
        case Mishap.LOSES_POWER:
            await cluster.lose_power(name)
            await asyncio.sleep(HANGS_S)
            await machine.boot()
        case Mishap.NODED:
            await machine.kill_noded()
            await asyncio.sleep(2.0)
            await machine.start_noded()
        case Mishap.CUT_OFF:
            cluster.network.isolate(name)
            await asyncio.sleep(HANGS_S)
            cluster.heal()
