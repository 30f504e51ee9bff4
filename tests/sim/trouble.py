"""What breaks by chance: coordinators, node daemons, machines, wires, clocks; and the words of
operators who help.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from common.errors import GntError
from common.model.stamp import Stamp
from common.names import NodeName
from coordinator.operations.node.modify import ModifyNode
from coordinator.quorum.question import Word
from noded.replica.store import ReplicaFile
from tests.sim.invariants import Invariants
from tests.sim.oddities import Oddities
from tests.sim.operators import Operators
from tests.support.cluster import SimulatedCluster
from tests.support.coordinators import Coordinator
from tests.support.faults import Late, Lossy, Repeated, Slow
from tests.support.network import Fault

TROUBLE_EVERY_S = 8.0
PATIENCE_S = 60.0
SLOW_S = 1.0  # each way; the word waits longer for whoever can be reached
CLOCK_JUMPS_S = (-7200.0, -60.0, -1.0, 1.0, 60.0, 600.0)


class Trouble:
    """Makes it, and makes peace of it; ``note`` is told what happens."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        random: Random,
        invariants: Invariants,
        operators: Operators,
        note: Callable[[str], None],
    ) -> None:
        self._cluster, self._random, self._note = cluster, random, note
        self._operators = operators
        self._oddities = Oddities(cluster, random, invariants, note)
        self._dead: asyncio.Task[None] | None = None  # the story of a machine given up
        self._off = ""  # the machine of that story, while it is switched off
        self._is_ending = False
        self._faults: dict[str, Fault] = {
            "calls and answers get lost": Lossy(random, 0.02),
            "calls and answers come late": Late(random, 0.05, 60.0),
            "calls come again": Repeated(random, 0.2, 60.0),
        }

    async def make(self) -> None:
        """Go on for ever."""
        every: list[Callable[[], Awaitable[None]]] = [
            self._kill_a_coordinator, self._start_a_coordinator, self._start_a_coordinator,
            self._take_over, self._take_over, self._give_a_word, self._isolate, self._cut,
            self.heal, self.heal, self._restart_a_noded, self._disturb_calls, self._disturb_calls,
            self._power_a_machine_down_and_up, self._suspend_a_machine, self._suspend_a_master,
            self._set_a_clock, self._give_a_machine_up, self._oddities.have_a_node_lie,
            self._oddities.leave_a_job_of_another_version,
        ]  # fmt: skip
        while True:
            await asyncio.sleep(self._random.expovariate(1 / TROUBLE_EVERY_S))
            await self._random.choice(every)()

    async def end(self) -> None:
        """Mend everything."""
        self._is_ending = True
        await self.heal()
        self._oddities.stop_lying()
        for name, machine in self._cluster.machines.items():
            self._cluster.resume(name)
            if machine.noded is None and name != self._off:
                await machine.boot()
        if self._dead is not None:
            await self._dead

    async def hand_out_the_roster(self) -> None:
        """Copy it to nodes that do not know the master, since they were away when it was promoted.

        Nothing but whom they knew, as master, or an operator can tell them.
        """
        (master,) = self._cluster.masters()
        roster = self._cluster.machines[master.name].paths.roster.read_bytes()
        for node in master.running.store.state.config.sorted_nodes():
            machine = self._cluster.machines[node.name]
            assert machine.noded
            if master.name not in machine.noded.candidates.roster.candidates:
                self._note(f"{node.name} is told of {master.name} by an operator")
                await machine.kill_noded()
                machine.paths.roster.write_bytes(roster)
                await machine.start_noded()

    async def heal(self) -> None:
        self._note("the network is mended")
        self._cluster.heal()
        for fault in self._faults.values():
            if fault in self._cluster.network.faults:
                self._cluster.network.faults.remove(fault)

    async def take_over(self, name: str, word: Word = Word.NONE) -> None:
        """Do ``gnt-cluster master-failover`` on a machine, if it is up."""
        machine = self._cluster.machines[name]
        if machine.noded is None or any(m.name == name for m in self._cluster.masters()):
            return
        what = f"take-over by {name}" + (f", {word.value}" if word is not Word.NONE else "")
        await self._try(what, self._cluster.take_over(name, word))

    def _name(self) -> str:
        return self._random.choice(self._cluster.names)

    async def _kill_a_coordinator(self) -> None:
        for master in self._cluster.masters()[:1]:
            self._note(f"the coordinator on {master.name} is killed")
            await master.kill()

    async def _start_a_coordinator(self) -> None:
        name = self._name()
        if not any(master.name == name for master in self._cluster.masters()):
            await self._try(f"start on {name}", self._cluster.start_master(name))

    async def _take_over(self) -> None:
        await self.take_over(self._name())

    async def _give_a_word(self) -> None:
        """Say what is true: no other master runs, and whoever is up can be reached, if slowly.

        A word that is given while others can do without this node costs what it does from then
        on; so is it with one that leaves out who has the newest state. Neither is a fault of ours.
        """
        up = [name for name in self._cluster.names if name != self._off]
        if not all(self._is_up(name) for name in up):
            return
        for coordinator in self._cluster.coordinators:
            await coordinator.kill()  # in doubt, too: it would go on when it is confirmed
        await self.heal()
        self._oddities.stop_lying()
        name, slow = self._random.choice(up), self._random.choice(up)
        delay_s = self._random.uniform(0, SLOW_S)
        slowness = Slow(lambda trip: trip.target == slow, delay_s)
        self._cluster.network.faults.append(slowness)
        # What was acknowledged since the last look at the masters is on some disks already.
        shown = [self._stamp_of(each) for each in self._cluster.names]
        newest = self._stamp_of(name).age >= max(each.age for each in shown)
        words = (Word.NO_VOTING, Word.LOCAL_IS_RIGHT) if newest else (Word.NO_VOTING,)
        await self.take_over(name, self._random.choice(words))
        self._cluster.network.faults.remove(slowness)

    def _is_up(self, name: str) -> bool:
        machine = self._cluster.machines[name]
        return machine.noded is not None and not machine.process.is_suspended

    def _stamp_of(self, name: str) -> Stamp:
        replica = ReplicaFile(self._cluster.machines[name].paths.replica)
        stamp = replica.stamp()
        replica.close()
        return stamp

    async def _isolate(self) -> None:
        name = self._name()
        self._note(f"{name} is cut off")
        self._cluster.network.isolate(name)

    async def _cut(self) -> None:
        one, other = self._random.sample(self._cluster.names, 2)
        one_way = self._random.random() < 0.5
        self._note(f"{one} is cut from {other}{', one way' if one_way else ''}")
        self._cluster.cut(one, other, one_way=one_way)

    async def _disturb_calls(self) -> None:
        what = self._random.choice(list(self._faults))
        if self._faults[what] not in self._cluster.network.faults:
            self._note(what)
            self._cluster.network.faults.append(self._faults[what])

    async def _restart_a_noded(self) -> None:
        machine = self._cluster.machines[self._name()]
        if machine.noded is None:
            return
        self._note(f"noded on {machine.name} is killed and started again")
        await machine.kill_noded()
        await asyncio.sleep(self._random.uniform(0, 5))
        await machine.start_noded()

    async def _power_a_machine_down_and_up(self) -> None:
        name = self._name()
        if self._cluster.machines[name].noded is None:
            return
        self._note(f"{name} loses power for a while")
        await self._cluster.lose_power(name)
        await asyncio.sleep(self._random.uniform(1, 20))
        await self._cluster.machines[name].boot()

    async def _suspend_a_machine(self) -> None:
        name = self._name()
        self._note(f"{name} is suspended for a while")
        self._cluster.suspend(name)
        await asyncio.sleep(self._random.uniform(1, 60))
        self._cluster.resume(name)

    async def _suspend_a_master(self) -> None:
        for master in self._cluster.masters()[:1]:
            self._note(f"the coordinator on {master.name} is suspended for a while")
            master.suspend()
            await asyncio.sleep(self._random.uniform(1, 40))
            if self._random.random() < 0.5:
                await self._take_over()
            master.resume()

    async def _set_a_clock(self) -> None:
        name, jump_s = self._name(), self._random.choice(CLOCK_JUMPS_S)
        self._note(f"the clock of {name} jumps by {jump_s:g} s")
        self._cluster.machines[name].clock_is_off_s += jump_s

    async def _give_a_machine_up(self) -> None:
        """Have a machine die, and an operator say so, which is true until it is said no more."""
        name = self._name()
        if self._dead is None and self._cluster.machines[name].noded is not None:
            self._dead = asyncio.ensure_future(self._be_dead(name))

    async def _be_dead(self, name: str) -> None:
        self._note(f"{name} dies")
        self._off = name
        await self._cluster.lose_power(name)
        await self._see_done(ModifyNode(node_name=NodeName(name), offline=True, force=True))
        await asyncio.sleep(self._random.uniform(0, 30))
        self._note(f"{name} is back")
        self._off = ""
        await self._cluster.machines[name].boot()
        await self._see_done(ModifyNode(node_name=NodeName(name), offline=False))
        self._dead = None

    async def _see_done(self, order: ModifyNode) -> None:
        """Give an order to the first master there is, and wait until the job has ended."""
        number = None
        while number is None:
            await asyncio.sleep(5)
            if self._is_ending:
                return  # without this machine there may be no majority to take the order
            for master in self._cluster.masters()[:1]:
                number = await self._operators.order(master, order)
        while not any(self._has_ended(master, number) for master in self._cluster.masters()):
            await asyncio.sleep(2)
            if self._is_ending and not any(
                m.running.store.writable for m in self._cluster.masters()
            ):
                return  # it is not needed only to be given up, but for a majority

    def _has_ended(self, master: Coordinator, number: int) -> bool:
        store = master.running.store
        job = store.state.jobs.get(number)  # type: ignore[call-overload]  # a JobId
        is_ours = store.state.stamp.epoch == master.running.confirmed.won.epoch
        return bool(is_ours and job is not None and job.status.is_final)

    async def _try(self, what: str, attempt: Awaitable[Coordinator]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                coordinator = await attempt
        except (GntError, OSError, TimeoutError) as error:
            self._note(f"{what} fails: {error}")
        else:
            if coordinator.master is not None:
                won = coordinator.running.confirmed.won
                self._note(f"{what} succeeds, epoch {won.epoch}")
