"""Starting QEMU: everything is looked at first, and nothing is left when it fails."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.kvm_words import Accelerator
from common.names import TaskId
from common.noderpc.instances import GuestSpec
from noded.hypervisor.interface import OpenDisk
from noded.hypervisor.kvm import drives
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.after_start import Passwords, finish
from noded.hypervisor.kvm.chroot import check_chroot, rooted
from noded.hypervisor.kvm.coming_up import until_up
from noded.hypervisor.kvm.displays import card
from noded.hypervisor.kvm.firmware_files import check_firmware
from noded.hypervisor.kvm.guest_parameters import parameters_of
from noded.hypervisor.kvm.handing_over import Resources, find_program, hand_over, huge_page
from noded.hypervisor.kvm.home import Home, Record, homes
from noded.hypervisor.kvm.ifup import Ifup
from noded.hypervisor.kvm.processors import check_processors, pinning
from noded.hypervisor.kvm.tpm import Tpm, check_tpm
from noded.hypervisor.kvm.user import find_user, run_as, users_of
from noded.hypervisor.rules import check_extra
from noded.hypervisor.slots import disk_slots, nic_slots
from noded.system.process import Process, start
from noded.system.threads import in_thread


class Started(NamedTuple):
    """What is written down of a guest, and its processes, which are the caller's to close."""

    record: Record
    qemu: Process
    tpm: Process | None


class Launcher:
    """Starts guests of one node, each as a user of its own."""

    def __init__(
        self,
        instances: Path,
        accelerators: Accelerators,
        *,
        rules: Path,
        open_disk: OpenDisk,
        ifup: Ifup,
        never: tuple[Path, ...],
    ) -> None:
        """Start guests whose directories are below ``instances``.

        Args:
            instances: see ``KvmHypervisor``.
            accelerators: of this node.
            rules: where root of this node says what guests may be given.
            open_disk: where their disks come from.
            ifup: sets up their taps.
            never: directories of which nothing is given to a guest, whatever the rules say.
        """
        self._instances = instances
        self._accelerators = accelerators
        self._resources = Resources(rules, never, open_disk)
        self._ifup = ifup
        self._choosing = asyncio.Lock()  # a user, until it is written down

    async def check_startable(self, guest: GuestSpec) -> Accelerator:
        """Check all but the disks, and choose how the guest is to run.

        Raises:
            InvalidRequest: a parameter makes no sense.
            NodeFailure: a program or file is missing or not allowed, or KVM is wanted and does
                not work.
        """
        parameters = parameters_of(guest)
        with _about(guest):
            rules = await in_thread(self._resources.read_rules)
            program = await in_thread(find_program, rules, parameters)
            for path in (
                parameters.kernel_path,
                parameters.initrd_path,
                *drives.images(parameters),
            ):
                if path:
                    os.close(await in_thread(self._resources.open_image, rules, path))
            await in_thread(self._resources.read_passwords, rules, parameters)
            await in_thread(self._resources.read_certificates, rules, parameters)
            check_processors(parameters, guest.vcpus, guest.name)
            pinning(parameters, range(guest.vcpus), frozenset(os.sched_getaffinity(0)))
            await in_thread(huge_page, guest, parameters)
            check_extra(rules, parameters.kvm_extra)
            check_tpm(guest, parameters)
            check_chroot(parameters, program)
            if guest.nics:
                await self._ifup.check()
            users_of(guest, parameters, rules)
            check_firmware(parameters.firmware)
            if parameters.spice_bind and not guest.port:
                raise InvalidRequest(
                    f"It has no port for its SPICE display; “gnt-instance modify -H "
                    f"spice_bind={parameters.spice_bind} {guest.name}” gives it one."
                )
        wanted = parameters.wanted_accelerator
        if wanted is Accelerator.TCG:
            return Accelerator.TCG
        verdict = await self._accelerators.verdict(program)
        if verdict.kvm:
            return Accelerator.KVM
        if wanted is Accelerator.AUTO:
            return Accelerator.TCG
        raise NodeFailure(
            f"{guest.name} wants KVM, which does not work here: {verdict.reason}. Set accelerator "
            "to auto or tcg to run it slowly.",
            reason=verdict.reason,
        )

    async def launch(
        self,
        home: Home,
        guest: GuestSpec,
        taps: tuple[str, ...],
        *,
        receives: TaskId | None = None,
        paused: bool = False,
    ) -> Started:
        """Start a guest's QEMU in an empty directory and return when it answers.

        Args:
            home: the directory.
            guest: what to run.
            taps: its network devices.
            receives: the move by which its memory comes; None to boot it.
            paused: have it do nothing before it is told to.

        Raises:
            InvalidRequest: a parameter makes no sense.
            NodeFailure: why it cannot be started, with the last of what QEMU said.
        """
        accelerator = await self.check_startable(guest)
        guest = replace(
            guest,
            slots=disk_slots((disk.id for disk in guest.disks), guest.slots),
            nic_slots=nic_slots((nic.id for nic in guest.nics), guest.nic_slots),
        )
        async with contextlib.AsyncExitStack() as undo:  # also when cancelled: half a start is none
            undo.callback(home.remove)
            with _about(guest), contextlib.ExitStack() as ours:  # QEMU has copies of its own
                passwords = await in_thread(self._find_passwords, guest)
                record = await self._settle(home, guest, accelerator, receives, paused)
                await self._ifup.run(guest, dict(enumerate(taps)))
                prepared = await in_thread(
                    hand_over, self._resources, ours, home, guest, taps, record
                )
                tpm = _start_tpm(undo, home, prepared.tpm) if prepared.tpm else None
                groups = self._accelerators.groups if accelerator is Accelerator.KVM else ()
                argv = run_as(record.user, groups, prepared.argv)
                argv = rooted(home, parameters_of(guest), argv)
                started = _undone(undo, start(argv, home.log, prepared.handed.all))
                home.note(started)
            await until_up(home, record, started)
            record = await finish(home, record, parameters_of(guest), passwords)
            home.write(record)
            undo.pop_all()
        return Started(record, started, tpm)

    async def _settle(
        self,
        home: Home,
        guest: GuestSpec,
        accelerator: Accelerator,
        receives: TaskId | None,
        paused: bool,
    ) -> Record:
        """Write down how the guest runs, as whom above all: nobody else shall be the same."""
        async with self._choosing:
            user = await in_thread(self._find_user, guest)
            record = Record(
                id=guest.id,
                name=guest.name,
                memory=guest.memory,
                vcpus=guest.vcpus,
                nics=tuple(nic.id for nic in guest.nics),
                disks=guest.slots,
                nic_slots=guest.nic_slots,
                parameters=guest.parameters | {"vga": card(parameters_of(guest))},
                wanted_memory=guest.wanted_memory,
                accelerator=accelerator,
                user=user,
                held=paused,
                receives=receives or TaskId(""),
            )
            home.prepare(record)
            return record

    def _find_user(self, guest: GuestSpec) -> int:
        records = (home.record() for home in homes(self._instances))
        taken = [record.user for record in records if record and record.id != guest.id]
        rules = self._resources.read_rules()
        users = users_of(guest, parameters_of(guest), rules)
        return find_user(users, rules, guest.id, taken)

    def _find_passwords(self, guest: GuestSpec) -> Passwords:
        return self._resources.read_passwords(self._resources.read_rules(), parameters_of(guest))


def _start_tpm(undo: contextlib.AsyncExitStack, home: Home, tpm: Tpm) -> Process:
    started = _undone(undo, start(tpm.command, home.tpm_log, tpm.handed))
    home.note_tpm(started)
    return started


def _undone(undo: contextlib.AsyncExitStack, started: Process) -> Process:
    """Have a process killed and closed if the guest does not come up."""
    undo.enter_context(started)
    undo.push_async_callback(started.kill)
    return started


@contextlib.contextmanager
def _about(guest: GuestSpec) -> Iterator[None]:
    """Say of a refusal which guest it is about.

    Raises:
        InvalidRequest, NodeFailure: as within; what the system refuses is a NodeFailure.
    """

    def why(sentence: str) -> str:
        return f"{guest.name} cannot be started here: {sentence[:1].lower()}{sentence[1:]}"

    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(why(error.message), **error.detail) from error
    except NodeFailure as error:
        raise NodeFailure(why(error.message), **error.detail) from error
    except OSError as error:
        raise NodeFailure(why(f"{error.strerror or error}.")) from error
