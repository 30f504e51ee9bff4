"""One node: its handlers, its memory of who is master, and the way of a call through them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from common.errors import Deposed, GntError, NodeFailure
from common.names import ClusterName, NodeId
from common.paths import Paths
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope
from common.rpc.server import Dispatcher, Reply, refusal
from common.tasks import Background
from common.tls.context import Peer
from noded.calls.caller import check_caller
from noded.calls.expiry import OwnClock
from noded.calls.fence import EpochFence
from noded.calls.grants import GrantFile
from noded.calls.recorded import RecordedAnswers
from noded.calls.roster import KnownCandidates
from noded.copies.interface import Copier
from noded.exports.interface import ExportStore
from noded.ganeti_paths import GanetiPaths
from noded.guest_console import GuestConsoles
from noded.handlers.confd import ConfdHandlers
from noded.handlers.copies import CopyHandlers
from noded.handlers.disks import DiskHandlers
from noded.handlers.exports import ExportHandlers
from noded.handlers.facts import FactsHandlers
from noded.handlers.files import FileHandlers
from noded.handlers.hooks import HookHandlers
from noded.handlers.identity import IdentityHandlers
from noded.handlers.instances import InstanceHandlers
from noded.handlers.join import JoinHandlers
from noded.handlers.master_address import MasterAddressHandlers
from noded.handlers.mastership import MastershipHandlers
from noded.handlers.mirrors import MirrorHandlers
from noded.handlers.network import NetworkHandlers
from noded.handlers.operating_systems import OsHandlers
from noded.handlers.physical_volumes import PhysicalVolumeHandlers
from noded.handlers.programs import ProgramHandlers
from noded.handlers.providers import ProviderHandlers
from noded.handlers.remote import RemoteHandlers, RunLine
from noded.handlers.replica import ReplicaHandlers
from noded.handlers.rest_users import RestUsersHandlers
from noded.handlers.roster import RosterHandlers
from noded.handlers.snapshots import SnapshotHandlers
from noded.handlers.tasks import TaskHandlers
from noded.hooks.interface import HookRunner
from noded.hypervisor.interface import Hypervisor
from noded.identity.keys import KeyMaker
from noded.identity.store import IdentityStore
from noded.machine.driver import Machine
from noded.network.interface import NetworkDriver
from noded.operating_systems.interface import OsDriver
from noded.powercycle import PowerSwitch
from noded.programs.interface import ProgramRunner
from noded.remote.shell import run_shell
from noded.storage.lvm.physical import PhysicalVolumeDriver
from noded.storage.storages import Storages
from noded.system.patience import bounded_by
from noded.system.turns import Turns
from noded.tasks.registry import TaskRegistry

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Drivers:
    """How a node reaches the outside; a simulation gives fakes."""

    storages: Storages
    physical: PhysicalVolumeDriver | None = None  # where there is LVM
    copier: Copier
    exports: ExportStore
    operating_systems: OsDriver
    hooks: HookRunner
    programs: ProgramRunner
    network: NetworkDriver
    hypervisors: Mapping[str, Hypervisor]  # by their names: "kvm"
    machine: Machine
    power: PowerSwitch
    keys: KeyMaker
    now: Callable[[], float]  # the time in seconds since 1970
    clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()  # never set
    memory_locked: Callable[[], bool] = lambda: False
    run_line: RunLine = run_shell


class Node:
    """Everything of noded but its process, its port and TLS.

    All that it must not forget is on disk: a new object over the same paths goes on where
    another was killed.
    """

    def __init__(self, paths: Paths, drivers: Drivers) -> None:
        """Read what was kept.

        Raises:
            NodeFailure: a file is damaged; noded must not start.
        """
        self._drivers = drivers
        self._background = Background()
        self._fence = EpochFence(GrantFile(paths.grants))
        self.clock = OwnClock(drivers.clock)
        self.candidates = KnownCandidates(
            paths.roster, paths.revoked_keys, paths.ssconf / "master_candidates"
        )
        self._recorded = RecordedAnswers(self._background)
        self._tasks = TaskRegistry()
        self._replica = ReplicaHandlers(paths.replica)
        self.identity = IdentityStore(paths, drivers.keys, now=drivers.now)
        self._links = GanetiPaths(paths)
        files, confd = FileHandlers(paths.ssconf, self._links), ConfdHandlers(paths.confd)
        rest_users = RestUsersHandlers(paths)
        self.instances = InstanceHandlers(
            drivers.hypervisors, drivers.network, self._tasks, drivers.storages
        )
        self.consoles = GuestConsoles(self.instances.find_console, self.instances.release)
        self._facts = FactsHandlers(
            self.identity,
            machine=drivers.machine,
            hypervisors=drivers.hypervisors,
            instances=self.instances,
            network=drivers.network,
            storages=drivers.storages,
            power=drivers.power,
            now=drivers.now,
            memory_locked=drivers.memory_locked,
            background=self._background,
        )
        self._dispatcher = Dispatcher(
            confd,
            CopyHandlers(drivers.copier, self._tasks),
            DiskHandlers(drivers.storages, turns := Turns()),
            ExportHandlers(drivers.exports),
            self._facts,
            files,
            HookHandlers(drivers.hooks),
            IdentityHandlers(
                self.identity,
                instances=self.instances,
                replica=self._replica,
                files=files,
                published=(confd, rest_users),
                fence=self._fence,
                candidates=self.candidates,
            ),
            self.instances,
            JoinHandlers(
                self.identity, files=files, replica=self._replica, candidates=self.candidates
            ),
            MirrorHandlers(drivers.storages.mirrors, turns),
            MasterAddressHandlers(drivers.network),
            MastershipHandlers(self._fence, self._replica.for_ballot),
            NetworkHandlers(drivers.network),
            OsHandlers(drivers.operating_systems, drivers.storages),
            PhysicalVolumeHandlers(drivers.physical),
            ProgramHandlers(drivers.programs),
            ProviderHandlers(paths.providers()),
            RemoteHandlers(paths, drivers.run_line),
            self._replica,
            rest_users,
            RosterHandlers(self.candidates),
            SnapshotHandlers(drivers.storages, drivers.hypervisors, turns),
            TaskHandlers(self._tasks),
        )

    @property
    def cluster(self) -> ClusterName | None:
        """Return which cluster this node is in."""
        return self.identity.member.cluster if self.identity.member else None

    @property
    def uuid(self) -> NodeId:
        """Return which node of its cluster this is.

        Raises:
            NodeFailure: it is in none.
        """
        if self.identity.member is None:
            raise NodeFailure("This node is in no cluster.")
        return self.identity.member.node_uuid

    async def start(self) -> None:
        """Clear up after a crash, and be ready for calls.

        Raises:
            NodeFailure: the disk is full or broken.
        """
        if self.identity.member is None:
            # The last steps of leaving, if that was cut short.
            await self._fence.forget()
            await self.candidates.forget()
        elif not self._fence.grant.epoch:
            await self._recall_epoch()
        await self.identity.prepare()
        self._links.make()  # those below /run are gone after a restart of the machine
        self._background.start(self._facts.prepare(), name="look at this node")

    def expect(
        self, service: str, method: str, envelope: Envelope, caller: Peer | None
    ) -> CallSpec:
        """Return what a call is, before its arguments are read.

        Raises:
            GntError: there is none of that name, or this caller may not make it.
        """
        try:
            call = self._dispatcher.find(service, method)
            if call.fenced and caller is not None:
                # Before his role: a master who was replaced and demoted has to hear the former.
                self._fence.check(envelope.epoch)
            self.check_caller(call, caller)
        except GntError as error:
            log.info("%s.%s of %s is refused: %s", service, method, _named(caller), error)
            raise
        return call

    async def call(
        self, service: str, method: str, envelope: Envelope, caller: Peer | None, body: bytes
    ) -> Reply:
        """Check and carry out one call; never raises, but for cancellation.

        An order goes on when its caller hangs up: what was begun has to end in a known state.

        Args:
            service: as in "instances".
            method: as in "guests".
            envelope: what came with the call.
            caller: by its certificate of our cluster; None if it showed none.
            body: the arguments, JSON.
        """
        try:
            call = self.expect(service, method, envelope, caller)
        except GntError as error:
            return refusal(error)
        try:
            reply = await self._take(call, envelope, caller, body)
        except GntError as error:
            log.info("%s of %s is refused: %s", call.name, _named(caller), error)
            reply = refusal(error)
        shown = self.clock.read()  # of now, also with a recorded answer
        return Reply(reply.status, reply.body, shown)

    async def _take(
        self, call: CallSpec, envelope: Envelope, caller: Peer | None, body: bytes
    ) -> Reply:
        def check() -> None:
            if call.expires:
                self.clock.check(envelope.good_until, call.name)

        with bounded_by(check):
            if not call.fenced or caller is None:
                check()
                return await self._dispatcher.run(call, body)
            await self._fence.admit(envelope.epoch, caller.node)
            return await self._recorded.once(
                caller.node,
                envelope.call,
                (call.name, body),
                lambda: self._carry_out(call, envelope, caller, body),
            )

    def stop_watching(self) -> None:
        """Answer those who wait for news at once, for the daemon is about to end."""
        self._fence.stop_watching()

    def check_caller(self, call: CallSpec, caller: Peer | None) -> None:
        """Refuse a call that this caller may not make.

        Raises:
            Conflict: it may not; says why.
        """
        check_caller(call, caller, self.cluster, self.candidates)

    async def close(self) -> None:
        """End all calls and tasks; guests are left alone."""
        self.stop_watching()
        await self.consoles.close()
        await self._background.close()
        await self._tasks.close()
        await self._replica.close()
        for hypervisor in self._drivers.hypervisors.values():
            await hypervisor.close()

    async def _recall_epoch(self) -> None:
        """Bound from below what was granted: the file that told is gone, as from a new disk."""
        try:
            stamp, _ = await self._replica.for_ballot()
        except GntError as error:
            log.warning("no grant is kept here, and the replica does not tell an epoch: %s", error)
            return
        if stamp is not None:
            log.warning(
                "no grant is kept here; by the replica it is at least epoch %s", stamp.epoch
            )
            self._fence.recall(stamp.epoch)

    async def _carry_out(
        self, call: CallSpec, envelope: Envelope, caller: Peer, body: bytes
    ) -> Reply:
        try:
            with self._fence.hold(envelope.epoch, call.name):
                reply = await self._dispatcher.run(call, body)
        except Deposed as error:
            reply = refusal(error)
        if reply.status != HTTPStatus.OK:
            told = reply.body.decode()
            log.info("%s of %s for job %s failed: %s", call.name, caller.node, envelope.job, told)
        return reply


def _named(caller: Peer | None) -> str:
    return caller.node if caller else "somebody without a certificate"
