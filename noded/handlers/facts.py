"""Calls about the node itself, and its power switch."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from common.errors import Conflict, GntError
from common.model.pool import Pool
from common.names import MiB
from common.noderpc.facts import Facts, NodeFacts, StorageReport
from common.noderpc.instances import Instances
from common.tasks import Background
from common.version import VERSION
from noded.hypervisor.interface import Hypervisor
from noded.identity.store import IdentityStore
from noded.machine.driver import Machine
from noded.machine.parse import split_memory
from noded.network.interface import NetworkDriver
from noded.powercycle import PowerSwitch
from noded.storage.storages import Storages

UNTIL_POWER_OFF_S = 0.5  # for the answer to get out
VERSIONS_KEPT_S = 300.0
STORAGE_PATIENCE_S = 5.0  # for a network file system that hangs

log = logging.getLogger(__name__)


class FactsHandlers(Facts):
    def __init__(
        self,
        identity: IdentityStore,
        *,
        machine: Machine,
        hypervisors: Mapping[str, Hypervisor],
        instances: Instances,
        network: NetworkDriver,
        storages: Storages,
        power: PowerSwitch,
        now: Callable[[], float],
        memory_locked: Callable[[], bool],
        background: Background,
    ) -> None:
        self._identity = identity
        self._machine = machine
        self._hypervisors = hypervisors
        self._instances = instances
        self._network = network
        self._storages = storages
        self._power = power
        self._now = now
        self._memory_locked = memory_locked
        self._background = background
        self._known: dict[str, str] = {}  # versions of hypervisors
        self._versions_until_s = 0.0
        self._asked: dict[Pool, asyncio.Task[StorageReport]] = {}

    async def prepare(self) -> None:
        """Find out beforehand what takes seconds to find out."""
        for hypervisor in self._hypervisors.values():
            await hypervisor.prepare()
        await self._versions()
        await self._network.prepare()

    async def facts(self, *, storage: tuple[Pool, ...] = ()) -> NodeFacts:
        member = self._identity.member
        if member is None:
            raise Conflict("This node is in no cluster.")
        machine = self._machine.look()
        guests = await self._instances.guests()
        free, own = split_memory(
            machine.memory,
            given=[guest.memory for guest in guests],
            resident=MiB(sum(guest.resident for guest in guests)),
        )
        mirroring = await self._storages.mirroring()
        return NodeFacts(
            name=member.node,
            version=VERSION,
            boot_id=machine.boot_id,
            clock=self._now(),
            memory_total=machine.memory.total,
            memory_free=free,
            memory_dom0=own,
            cpus=machine.processors.cpus,
            cpu_sockets=machine.processors.sockets,
            cpu_nodes=machine.memory_nodes,
            load=machine.load,
            hypervisors=await self._versions(),
            storage=await self._spaces(storage),
            memory_locked=self._memory_locked(),
            guests={guest.id: guest.memory for guest in guests},
            unmirrored=mirroring.problem,
            drbd_version=mirroring.version,
            drbd_helper=mirroring.helper,
            unguarded=self._network.unguarded,
            certificate_end=self._identity.valid_until,
        )

    async def powercycle(self) -> None:
        self._power.check()
        log.critical("This node power-cycles now, as the master ordered.")
        asyncio.get_running_loop().call_later(UNTIL_POWER_OFF_S, self._power.cycle)

    async def _versions(self) -> dict[str, str]:
        """Return versions, asked for once in a while: a program has to be started for each."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._versions_until_s:
            self._known = {name: await each.version() for name, each in self._hypervisors.items()}
            if all(self._known.values()):  # one that is missing may be installed any minute
                self._versions_until_s = now_s + VERSIONS_KEPT_S
        return self._known

    async def _spaces(self, pools: tuple[Pool, ...]) -> tuple[StorageReport, ...]:
        if not pools:
            return ()
        asked = [self._ask_for_space(pool) for pool in pools]
        await asyncio.wait(asked, timeout=STORAGE_PATIENCE_S)
        return tuple(map(_space_or_problem, pools, asked))

    def _ask_for_space(self, pool: Pool) -> asyncio.Task[StorageReport]:
        """Ask for one pool's space, unless the last time we asked has no answer yet.

        A look at a network file system that hangs cannot be ended; there shall be one only.
        """
        asked = self._asked.get(pool)
        if asked is None or asked.done():
            asked = self._background.start(self._storages.space(pool), name=f"space of {pool.name}")
            self._asked[pool] = asked
        return asked


def _space_or_problem(pool: Pool, asked: asyncio.Task[StorageReport]) -> StorageReport:
    """Return the answer; whatever is wrong with a pool must not hide the other facts."""
    try:
        return asked.result()
    except asyncio.InvalidStateError:
        problem = f"{pool.name} did not answer within {STORAGE_PATIENCE_S:g} s."
    except GntError as error:
        problem = error.message
    return StorageReport(pool=pool, total=MiB(0), free=MiB(0), usable=False, problem=problem)
