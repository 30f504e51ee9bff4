"""All that QEMU needs of its node is opened for it, and handed over when it is started."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec
from noded.hypervisor.interface import OpenDisk
from noded.hypervisor.kvm import commands, drives
from noded.hypervisor.kvm.after_start import Passwords
from noded.hypervisor.kvm.disk_source import source_of
from noded.hypervisor.kvm.display_certificates import Certificates, read_certificates
from noded.hypervisor.kvm.display_tls import SPICE, VNC
from noded.hypervisor.kvm.firmware import Opened as Firmware
from noded.hypervisor.kvm.firmware_files import open_firmware
from noded.hypervisor.kvm.guest_parameters import parameters_of
from noded.hypervisor.kvm.handed import Handed
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.lending import lend
from noded.hypervisor.kvm.nic_devices import Tap
from noded.hypervisor.kvm.ram import find_huge_page
from noded.hypervisor.kvm.taps import take_tap
from noded.hypervisor.kvm.tpm import Tpm, find_state, prepare, with_drives
from noded.hypervisor.rules import Rules, check_program, open_image, read_password, read_rules

_MOUNTS = Path("/proc/mounts")


class Resources(NamedTuple):
    """What of this node guests may be given.

    ``rules`` is the file where its root says so, ``never`` the directories of which nothing is
    given to a guest, whatever that says, and ``open_disk`` opens what disks are kept in.
    """

    rules: Path
    never: tuple[Path, ...]
    open_disk: OpenDisk

    def read_rules(self) -> Rules:
        return read_rules(self.rules)

    def open_image(self, rules: Rules, path: str) -> int:
        return open_image(rules, path, never=self.never)

    def read_passwords(self, rules: Rules, parameters: KvmParameters) -> Passwords:
        """Return the passwords of a guest's displays; empty for what has none, or no display."""

        def read(address: str, path: str) -> str:
            return read_password(rules, path, never=self.never) if address and path else ""

        return Passwords(
            vnc=read(parameters.vnc_bind_address, parameters.vnc_password_file),
            spice=read(parameters.spice_bind, parameters.spice_password_file),
        )

    def read_certificates(self, rules: Rules, parameters: KvmParameters) -> Certificates:
        """Return the certificates of a guest's displays."""
        return read_certificates(rules, parameters, never=self.never)


class Prepared(NamedTuple):
    """The command line of a QEMU, what it is handed, and its TPM, which has to be there first."""

    argv: tuple[str, ...]
    handed: Handed
    tpm: Tpm | None


def hand_over(
    resources: Resources,
    ours: contextlib.ExitStack,
    home: Home,
    guest: GuestSpec,
    taps: tuple[str, ...],
    record: Record,
) -> Prepared:
    """Open all that QEMU needs, and its TPM, and say how they are started.

    Args:
        resources: of this node.
        ours: closes here what was opened; QEMU has copies of its own.
        home: the guest's directory.
        guest: what to run.
        taps: its network devices.
        record: how it runs, as written down.
    """
    rules, parameters = resources.read_rules(), parameters_of(guest)
    opened = _Opened(resources, rules, ours, home)
    state = find_state(guest, parameters)
    tpm = prepare(home, record, state, resources.open_disk, opened.keep) if state else None
    guest = with_drives(guest, parameters)
    disks = [opened.keep(resources.open_disk(disk)) for disk in guest.disks]
    _lend_certificates(resources.read_certificates(rules, parameters), home, record)
    handed = Handed(
        qmp=opened.listen(home.qmp_socket),
        news=opened.listen(home.news_socket),
        serial=opened.listen(home.serial_socket),
        serial_log=opened.keep(home.open_serial_log()),
        agent=opened.listen(home.agent_socket) if parameters.use_guest_agent else None,
        tpm=tpm.line if tpm else None,
        firmware=opened.firmware(parameters),
        kernel=opened.image(parameters.kernel_path) if parameters.kernel_path else None,
        initrd=opened.image(parameters.initrd_path) if parameters.initrd_path else None,
        disks=tuple(source_of(disk, parameters) for disk in disks),
        images=tuple(opened.image(path) for path in drives.images(parameters)),
        taps=tuple(
            opened.tap(nic, name, parameters) for nic, name in zip(guest.nics, taps, strict=True)
        ),
    )
    argv = commands.guest(
        guest,
        parameters,
        program=find_program(rules, parameters),
        accelerator=record.accelerator,
        handed=handed,
        home=str(home.directory),
        huge_page=huge_page(guest, parameters),
        incoming=bool(record.receives),
        paused=record.held,
    )
    return Prepared(argv, handed, tpm)


class _Opened(NamedTuple):
    """Opens what a guest gets of its node, to be closed here when QEMU has its copies."""

    resources: Resources
    rules: Rules
    ours: contextlib.ExitStack
    home: Home

    def keep(self, descriptor: int) -> int:
        self.ours.callback(os.close, descriptor)
        return descriptor

    def image(self, path: str) -> int:
        return self.keep(self.resources.open_image(self.rules, path))

    def listen(self, path: Path) -> int:
        return self.ours.enter_context(self.home.listen(path)).fileno()

    def tap(self, nic: NicSpec, name: str, parameters: KvmParameters) -> Tap:
        taken = take_tap(name, queues=nic.queues, vhost=parameters.vhost_net)
        for descriptor in (*taken.queues, *taken.vhosts):
            self.keep(descriptor)
        return taken

    def firmware(self, parameters: KvmParameters) -> Firmware | None:
        opened = open_firmware(parameters.firmware)
        for descriptor in opened or ():
            self.keep(descriptor)
        return opened


def _lend_certificates(shown: Certificates, home: Home, record: Record) -> None:
    for name, pem in ((VNC, shown.vnc), (SPICE, shown.spice)):
        if pem:
            lend(home.directory / name, pem, record.user)


def huge_page(guest: GuestSpec, parameters: KvmParameters) -> int:
    """Return the size of the huge pages that a guest's memory is in, in bytes; 0 for none."""
    return find_huge_page(parameters.mem_path, guest.memory, _MOUNTS.read_text())


def find_program(rules: Rules, parameters: KvmParameters) -> str:
    found = shutil.which(parameters.kvm_path)
    if found is None:
        raise NodeFailure(
            f"There is no program {parameters.kvm_path}; install QEMU (Debian: qemu-system-x86).",
            path=parameters.kvm_path,
        )
    return check_program(rules, found)
