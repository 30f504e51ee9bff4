"""A machine of a simulated cluster: what it has keeps when its daemons are killed."""

import asyncio
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

from common.model.backing import (
    Backing,
    BlockBacking,
    DrbdBacking,
    DumpBacking,
    Elsewhere,
    FileBacking,
    GlusterBacking,
    LvmBacking,
    Qcow2Backing,
    StreamBacking,
)
from common.model.pool_kind import PoolKind
from common.names import DiskId, MiB, NodeId
from common.noderpc.disks import Access
from common.noderpc.instances import GuestReport
from common.noderpc.remote import Ended
from common.paths import Paths
from common.tasks import Background
from common.tls.context import CERTIFICATE
from common.tls.token import JoinToken
from noded.copies.fake import FakeCopier, FakeWires
from noded.daemon.node import Drivers
from noded.daemon.node import Node as Noded
from noded.exports.fake import FakeExports
from noded.hooks.fake import FakeHooks
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.identity.keys import OwnKeyMaker
from noded.machine.driver import Machine as HardwareDriver
from noded.machine.driver import MachineReport
from noded.machine.fake import FakeMachine
from noded.network.fake import FakeNetwork
from noded.operating_systems.fake import FakeOsDriver
from noded.powercycle import PowerSwitch
from noded.programs.fake import FakePrograms
from noded.storage.directories import read_directories
from noded.storage.drbd.devices import MirrorDevices
from noded.storage.drbd.driver import MirrorStorage
from noded.storage.drbd.fake import FakeDrbd
from noded.storage.drbd.fake_pairs import FakePairs
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.fake_elsewhere import FakeAdopted, FakeElsewhere
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.physical_fake import FakePhysicalVolumes
from noded.storage.plain import PlainStorage
from noded.storage.storages import Storages
from tests.support.contents import Contents
from tests.support.disk import Disk, Tree
from tests.support.image import GROUP, Identity, ip_of, read_identity
from tests.support.life import Life
from tests.support.process import Process

REBOOT_S = 30.0
EMPTY: Tree = {"var": {"lib": {"gantry": {}}}}  # the disk of a machine of no cluster
KEPT_ELSEWHERE = tuple(kind for kind in get_args(Backing) if issubclass(kind, Elsewhere))


class Machine:
    """One node's hardware, with the noded that runs on it, if one does.

    Its disk holds ``holds`` at first.

    Durable are what was synced of the files below ``root``, the local disks, and ``shared``, which
    is every machine's. Guests and taps go on when noded is killed, and end with the power.
    """

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        disk: Disk,
        holds: Tree,
        world: FakeWorld,
        wires: FakeWires,
        shared: FakeFiles,
        pairs: FakePairs,
        contents: list[Contents],
        now: Callable[[], float],
    ) -> None:
        self.name, self.ip = name, ip_of(name)
        self.paths = Paths(str(root))
        self._disk = disk
        disk.write(root, holds)
        self.guests = FakeHypervisor(world, self.ip)
        self.files, self.shared = FakeFiles(), shared
        self.storage = FakeStorage(
            partial(read_directories, self.paths.ssconf), local=self.files, shared=shared,
            uses=self._uses,
        )  # fmt: skip
        self.elsewhere = FakeElsewhere(shared, uses=self._uses)
        self.adopted = FakeAdopted(shared, uses=self._uses)
        # Of disks that are not made of volumes.
        self.fakes = (self.storage, self.elsewhere, self.adopted)
        self.volumes = FakeVolumes(GROUP, uses=self._uses_volume)
        self.drbd = FakeDrbd(pairs, self.volumes, self.ip, uses=self._uses)
        self.physical = FakePhysicalVolumes(self.volumes)
        self.exports = FakeExports()
        self.hooks = FakeHooks()
        self.programs = FakePrograms()
        self.written = Contents(self.storage, self.volumes, self.exports, self.elsewhere, contents)
        storages = self._storages()
        self.guests.open_disk = storages.open
        self.copier = FakeCopier(
            name, self.ip, wires, storages=storages, is_guests=self.guests.uses,
            contents=self.written, certificate=self._certificate,
        )  # fmt: skip
        self.operating_systems = FakeOsDriver(
            storages, self.written, streams=self.written.streams,
            is_in_use=lambda disk: self.guests.uses(disk) or self.copier.uses(disk),
        )  # fmt: skip
        self.network = FakeNetwork("br0")
        self.hardware = FakeMachine("boot 0")
        self.lines: list[str] = []  # that were run by a shell
        self.noded: Noded | None = None
        self.process = Process()
        self.boots = 0
        self.has_power = True
        self.clock_is_off_s = 0.0
        self.has_hypervisor = True
        self._now = now
        self._life = Life()
        self._power = Background()
        self._identity: Identity | None = None
        self._has_looked = False

    async def start_noded(self) -> None:
        """Start noded as after a boot, or after it was killed."""
        self._life = life = Life()
        self.has_power = True
        self.process = Process()
        starting = self.process.start(self._start_noded(life), name=f"start noded on {self.name}")
        await asyncio.wait([starting])
        if not starting.cancelled():  # killed meanwhile
            self.noded = starting.result()

    async def _start_noded(self, life: Life) -> Noded:
        noded = Noded(
            self.paths,
            Drivers(
                storages=self._storages(life), physical=life.of(self.physical),
                copier=life.of(self.copier),
                exports=life.of(self.exports),
                operating_systems=life.of(self.operating_systems),
                hooks=life.of(self.hooks), run_line=self._run_line,
                programs=life.of(self.programs),
                network=life.of(self.network),
                machine=_Hardware(self),
                hypervisors={"kvm": life.of(self.guests)} if self.has_hypervisor else {},
                power=_Switch(self, life), keys=OwnKeyMaker(), now=self.now,
            ),
        )  # fmt: skip
        noded.identity.on_change = self._identity_changed
        await noded.start()
        return noded

    async def _run_line(self, line: str) -> Ended:
        self.lines.append(line)
        return Ended(status=0, output="")

    def _storages(self, life: Life | None = None) -> Storages:
        def own(driver: Any) -> Any:
            return life.of(driver) if life else driver

        files, plain = own(self.storage), own(PlainStorage(self.volumes))
        devices = MirrorDevices(self.volumes, self.drbd, self._uuid)
        return Storages(
            {
                FileBacking: files, GlusterBacking: files, Qcow2Backing: files, LvmBacking: plain,
                DrbdBacking: own(MirrorStorage(devices)), DumpBacking: own(self.exports),
                StreamBacking: own(self.written.streams),
            }
            | dict.fromkeys(KEPT_ELSEWHERE, own(self.elsewhere))
            | {BlockBacking: own(self.adopted)},
            {PoolKind.DIRECTORY: files, PoolKind.VOLUME_GROUP: plain},
            own(MirrorUpkeep(devices)),
        )  # fmt: skip

    def _certificate(self) -> str:
        return (self.paths.identity / CERTIFICATE).read_text()

    def _uuid(self) -> NodeId:
        assert self.noded is not None
        return self.noded.uuid

    async def kill_noded(self) -> None:
        """End noded at once, wherever it is; what the guests do goes on."""
        noded, self.noded = self.noded, None
        self._life.ended = True
        await self.process.close()
        if noded is not None:
            await noded.close()

    async def lose_power(self) -> None:
        """End noded and all guests."""
        # First the guests: nothing that noded does on its way down may be seen by them.
        self._life.ended, self.has_power = True, False
        self.drbd.lose_power()
        self.guests.power_off()
        self.volumes.lose_power()
        self.copier.power_off()
        self.operating_systems.power_off()
        for fake in self.fakes:
            fake.attached.clear()
        left = self._disk.after_a_power_cut(self.paths.root)
        await self.kill_noded()
        self._disk.become(self.paths.root, left)
        self._has_looked = False
        await self._forget_taps()
        self.network.forget_addresses()

    async def boot(self) -> None:
        """Switch it on again; its guests are gone."""
        self.boots += 1
        self.hardware = FakeMachine(f"boot {self.boots}")
        await self.start_noded()

    async def wipe(self) -> None:
        """Lose everything that its disks held; it boots as a machine of no cluster."""
        await self.lose_power()
        self._disk.become(self.paths.root, EMPTY)
        for group in self.volumes.groups.values():
            group.volumes.clear()
        for fake in self.fakes:
            fake.local.disks.clear()
            fake.local.contents.clear()
        await self.boot()

    async def close(self) -> None:
        await self._power.close()
        shutil.rmtree(self.paths.root)  # SQLite brings nothing in order that has lost its name
        await self.kill_noded()

    def powercycle(self) -> None:
        """Lose power, and boot some time later."""
        self._power.start(self._powercycle(), name=f"power-cycle {self.name}")

    async def _powercycle(self) -> None:
        await self.lose_power()
        await asyncio.sleep(REBOOT_S)
        await self.boot()

    # As a place in the network

    def shows(self) -> Identity | None:
        if not self._has_looked:
            self._identity, self._has_looked = read_identity(self.paths.identity), True
        return self._identity

    def _identity_changed(self) -> None:
        self._has_looked = False

    def now(self) -> float:
        """What its clock shows, in seconds since 1970."""
        return self._now() + self.clock_is_off_s

    def shrink_memory(self, total_mib: int) -> None:
        """Have less memory than other machines; 1 GiB is its own."""
        self.hardware = FakeMachine(self.hardware.report.boot_id, total=MiB(total_mib))

    def _uses_volume(self, disk: DiskId) -> bool:
        """Tell whether a guest has a disk's volume open, and no device on top of it."""
        return self._uses(disk) and disk not in self.drbd.attached

    # For tests to look at

    @property
    def attached(self) -> dict[DiskId, Access]:
        """The disks that are attached here, of all kinds."""
        fakes = (*self.fakes, self.drbd)
        return {disk: access for fake in fakes for disk, access in fake.attached.items()}

    @property
    def local_disks(self) -> list[str]:
        """The paths of the disks that only this machine has, sorted."""
        files = (path for fake in self.fakes for path in fake.local.disks)
        exports = (*self.exports.finished, *self.exports.unfinished)
        dumps = (f"export {export}" for export in exports)
        return sorted((*files, *self.volumes.names(), *dumps))

    @property
    def contents(self) -> dict[str, str]:
        """What is on disks that only this machine has, by path; nothing of those with zeros."""
        self.copier.settle()
        self.operating_systems.settle()
        return self.written.by_path()

    @property
    def local_sizes(self) -> dict[str, int]:
        """The sizes of those disks, in MiB, by path."""
        return {path: size for fake in self.fakes for path, size in sizes_in(fake.local).items()}

    @property
    def token(self) -> JoinToken:
        """What the operator carries to the cluster."""
        assert self.noded is not None
        assert self.noded.identity.token is not None
        return self.noded.identity.token

    def _uses(self, disk: DiskId) -> bool:
        """Tell whether anything here has a disk open."""
        users = (self.guests, self.copier, self.operating_systems)
        return any(user.uses(disk) for user in users)

    async def guest_list(self) -> tuple[GuestReport, ...]:
        return await self.guests.guests()

    async def _forget_taps(self) -> None:
        await self.network.remove_taps(tuple(tap.nic for tap in await self.network.taps()))


def sizes_in(files: FakeFiles) -> dict[str, int]:
    """Return the sizes of what a file system holds, in MiB, by path."""
    return {path: disk.size for path, disk in sorted(files.disks.items())}


class _Hardware(HardwareDriver):
    """Looks at what the machine has now."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def look(self) -> MachineReport:
        return self._machine.hardware.look()


class _Switch(PowerSwitch):
    """Within reach of one noded process."""

    def __init__(self, machine: Machine, life: Life) -> None:
        self._machine, self._life = machine, life

    def check(self) -> None:
        pass

    def cycle(self) -> None:
        if not self._life.ended:
            self._life.ended = True
            self._machine.powercycle()
