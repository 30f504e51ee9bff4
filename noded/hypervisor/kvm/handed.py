"""What a QEMU is handed of its node."""

from dataclasses import dataclass

from noded.hypervisor.kvm.disk_devices import Source
from noded.hypervisor.kvm.firmware import Opened
from noded.hypervisor.kvm.nic_devices import Tap
from noded.hypervisor.kvm.tpm_commands import TpmLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """Descriptors that QEMU is started with: it may open next to nothing by itself."""

    qmp: int  # sockets that listen
    news: int  # QMP as well, for who listens to events while others ask
    serial: int
    serial_log: int
    agent: int | None = None
    tpm: TpmLine | None = None
    firmware: Opened | None = None
    kernel: int | None = None
    initrd: int | None = None
    disks: tuple[Source, ...] = ()  # in the order of the guest's disks
    images: tuple[int, ...] = ()  # in its CD drives
    taps: tuple[Tap, ...] = ()  # in the order of its nics

    @property
    def all(self) -> tuple[int, ...]:
        single = (number for number in (self.agent, self.kernel, self.initrd) if number is not None)
        disks = (disk.fdset for disk in self.disks)
        taps = (number for tap in self.taps for number in (*tap.queues, *tap.vhosts))
        ours = (self.qmp, self.news, self.serial, self.serial_log)
        tpm = self.tpm or ()
        return (*ours, *single, *tpm, *(self.firmware or ()), *disks, *self.images, *taps)
