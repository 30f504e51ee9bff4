"""Starting QEMU: everything is looked at first, and nothing is left when it fails."""

import asyncio
import contextlib
import os
import shutil
import socket
import stat
from pathlib import Path

from common.errors import NodeFailure
from common.messages import from_builtins
from common.model.parameters import Accelerator, KvmParameters
from common.noderpc.instances import GuestDisk, GuestSpec
from noded.hypervisor.kvm import commands, process
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import Silent, monitor
from noded.hypervisor.kvm.parse import explain
from noded.hypervisor.kvm.process import Process

START_S = 30.0
LOOK_EVERY_S = 0.02  # QEMU comes up in 50 ms


async def check_startable(guest: GuestSpec, accelerators: Accelerators) -> Accelerator:
    """Check all but the disks, and choose how the guest is to run.

    Raises:
        InvalidRequest: a parameter makes no sense.
        NodeFailure: a program or file is missing, or KVM is wanted and does not work.
    """
    parameters = _parameters(guest)
    if shutil.which(parameters.kvm_path) is None:
        raise NodeFailure(
            f"{guest.name} cannot be started here: there is no program "
            f"{parameters.kvm_path}; install QEMU (Debian: qemu-system-x86).",
            path=parameters.kvm_path,
        )
    for name in ("kernel_path", "initrd_path"):
        path = getattr(parameters, name)
        if path and not os.access(path, os.R_OK):
            raise NodeFailure(
                f"{guest.name} cannot be started here: {name} is {path}, and this node has no "
                "such file.",
                path=path,
            )
    if parameters.accelerator is Accelerator.TCG:
        return Accelerator.TCG
    verdict = await accelerators.verdict(parameters.kvm_path)
    if verdict.kvm:
        return Accelerator.KVM
    if parameters.accelerator is Accelerator.AUTO:
        return Accelerator.TCG
    raise NodeFailure(
        f"{guest.name} wants KVM, which does not work here: {verdict.reason}. Set accelerator "
        "to auto or tcg to run it slowly.",
        reason=verdict.reason,
    )


async def launch(
    home: Home,
    guest: GuestSpec,
    taps: tuple[str, ...],
    accelerators: Accelerators,
    *,
    incoming: bool,
) -> tuple[Process, Record]:
    """Start a guest's QEMU in an empty directory and return when it answers.

    Raises:
        InvalidRequest: a parameter makes no sense.
        NodeFailure: why it cannot be started, with the last of what QEMU said.
    """
    accelerator = await check_startable(guest, accelerators)
    parameters = _parameters(guest)
    for tap in taps:
        _check_tap(guest, tap)
    argv = commands.guest(
        guest,
        parameters,
        accelerator=accelerator,
        taps=taps,
        sources=tuple(_source(guest, disk, parameters) for disk in guest.disks),
        files=home.files,
        incoming=incoming,
    )
    record = Record(
        id=guest.id,
        name=guest.name,
        memory=guest.memory,
        vcpus=guest.vcpus,
        nics=tuple(nic.id for nic in guest.nics),
        accelerator=accelerator,
        migration_bandwidth=parameters.migration_bandwidth,
        migration_downtime=parameters.migration_downtime,
    )
    home.prepare(record)
    async with contextlib.AsyncExitStack() as undo:  # also when cancelled: half a start is none
        undo.callback(home.remove)
        started = process.start(argv, home.log)
        undo.enter_context(started)
        undo.push_async_callback(started.kill)
        await _until_up(home, record, started)
        undo.pop_all()
    return started, record


async def _until_up(home: Home, record: Record, started: Process) -> None:
    """Wait until QEMU has set up the machine and answers."""
    try:
        async with asyncio.timeout(START_S):
            while not started.has_ended:
                if home.qmp_socket.exists():
                    with contextlib.suppress(Silent):
                        async with monitor(home.qmp_socket, record.name) as session:
                            await session.ask("query-status")
                            return
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError as error:
        raise NodeFailure(
            f"The QEMU of {record.name} did not answer within {START_S:g} s and was killed; "
            f"{explain(home.last_words())}",
            instance=record.name,
        ) from error
    raise NodeFailure(
        f"{record.name} cannot be started: {explain(home.last_words())}", instance=record.name
    )


def _parameters(guest: GuestSpec) -> KvmParameters:
    what = f"the hypervisor parameters of {guest.name}"
    parameters = from_builtins(guest.parameters, KvmParameters, what=what)
    commands.check_parameters(parameters)
    return parameters


def _check_tap(guest: GuestSpec, tap: str) -> None:
    """Refuse a name that QEMU would make a tap of, plugged into nothing.

    Raises:
        NodeFailure: there is no such device.
    """
    try:
        socket.if_nametoindex(tap)
    except OSError as error:
        raise NodeFailure(
            f"{guest.name} cannot be started: its network device {tap} is not there.", tap=tap
        ) from error


def _source(guest: GuestSpec, disk: GuestDisk, parameters: KvmParameters) -> commands.Source:
    """Look at a disk's path.

    Raises:
        NodeFailure: there is nothing that could be a disk.
    """
    try:
        mode = Path(disk.path).stat().st_mode
    except OSError as error:
        raise NodeFailure(
            f"{guest.name} cannot be started: its disk {disk.path} cannot be opened: "
            f"{error.strerror}.",
            disk=disk.id,
            path=disk.path,
        ) from error
    if not (stat.S_ISBLK(mode) or stat.S_ISREG(mode)):
        raise NodeFailure(
            f"{guest.name} cannot be started: {disk.path} is neither a file nor a block device.",
            disk=disk.id,
            path=disk.path,
        )
    wanted = commands.DIRECT.get(parameters.disk_cache)
    direct = _can_bypass_cache(disk.path) if wanted is None else wanted
    return commands.Source(is_block_device=stat.S_ISBLK(mode), direct=direct)


def _can_bypass_cache(path: str) -> bool:
    """Tell whether the file system knows O_DIRECT; some in memory and in user space do not."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True
