"""What parameters ``kvm`` has, with Ganeti's names and meanings; those at the end are ours."""

from typing import Annotated

from msgspec import Meta

from common.messages import Order
from common.model.kvm_words import (
    Accelerator,
    BootOrder,
    DiskAio,
    DiskCache,
    DiskDiscard,
    DiskType,
    Display,
    DriveType,
    Firmware,
    KvmFlag,
    MigrationMode,
    NicType,
    RebootBehavior,
    ScsiController,
    Sound,
    SpiceImages,
    SpiceVideo,
    SpiceWan,
    UsbMouse,
)

Kind = Annotated[str, Meta(max_length=200)]
Count = Annotated[int, Meta(ge=0, le=1024)]  # 0: QEMU chooses


class KvmDeclared(Order):
    acpi: bool = True
    boot_order: BootOrder = BootOrder.DISK
    cdrom2_image_path: str = ""
    cdrom_disk_type: DriveType = DriveType.UNSET
    cdrom_image_path: str = ""
    cpu_cores: Count = 0
    cpu_mask: str = "all"
    cpu_sockets: Count = 0
    cpu_threads: Count = 0
    cpu_type: Kind = ""
    disk_aio: DiskAio = DiskAio.THREADS
    disk_cache: DiskCache = DiskCache.DEFAULT
    disk_discard: DiskDiscard = DiskDiscard.DEFAULT
    disk_type: DiskType = DiskType.PARAVIRTUAL
    floppy_image_path: str = ""
    initrd_path: str = ""
    kernel_args: str = "ro"
    kernel_path: str = ""
    keymap: str = ""
    kvm_extra: str = ""
    kvm_flag: KvmFlag = KvmFlag.UNSET
    kvm_path: str = "/usr/bin/qemu-system-x86_64"
    kvm_pci_reservations: int = 12
    machine_version: Kind = ""
    mem_path: Kind = ""
    migration_bandwidth: Annotated[int, Meta(ge=1, le=2**20)] = 32  # MiB/s
    migration_caps: str = ""  # with colons
    migration_downtime: Annotated[int, Meta(ge=1, le=2_000_000)] = 30  # ms; QEMU's own limit
    migration_mode: MigrationMode = MigrationMode.LIVE
    nic_type: NicType = NicType.PARAVIRTUAL
    reboot_behavior: RebootBehavior = RebootBehavior.REBOOT
    root_path: str = "/dev/vda1"
    scsi_controller_type: ScsiController = ScsiController.LSI
    security_domain: str = ""
    security_model: str = "none"
    serial_console: bool = True
    serial_speed: Annotated[int, Meta(ge=1, le=2**30)] = 38400  # bits/s
    soundhw: Sound = Sound.UNSET
    spice_bind: str = ""
    spice_image_compression: SpiceImages = SpiceImages.UNSET
    spice_ip_version: int = 0  # 4, 6, or any
    spice_jpeg_wan_compression: SpiceWan = SpiceWan.UNSET
    spice_password_file: str = ""  # on the node
    spice_playback_compression: bool = True
    spice_streaming_video: SpiceVideo = SpiceVideo.UNSET
    spice_tls_ciphers: str = "HIGH:-DES:-3DES:-EXPORT:-DH"
    spice_use_tls: bool = False
    spice_use_vdagent: bool = True
    spice_zlib_glz_wan_compression: SpiceWan = SpiceWan.UNSET
    usb_devices: str = ""  # with commas
    usb_mouse: UsbMouse = UsbMouse.UNSET
    use_chroot: bool = False
    use_guest_agent: bool = False
    use_localtime: bool = False
    user_shutdown: bool = False
    vga: Display = Display.UNSET
    vhost_net: bool = False
    virtio_net_queues: Annotated[int, Meta(ge=1, le=8)] = 1
    vnc_bind_address: str = ""
    vnc_password_file: str = ""  # on the node
    vnc_tls: bool = False
    vnc_x509_path: str = ""
    vnc_x509_verify: bool = False
    vnet_hdr: bool = True

    accelerator: Accelerator = Accelerator.AUTO
    firmware: Firmware = Firmware.BIOS
    rng: bool = True
    tpm: Kind = ""  # the disk on which its state is kept

    @property
    def wanted_accelerator(self) -> Accelerator:
        """What ``accelerator`` says, and Ganeti's ``kvm_flag``."""
        match self.kvm_flag:
            case KvmFlag.ENABLED:
                return Accelerator.KVM
            case KvmFlag.DISABLED:
                return Accelerator.TCG
            case KvmFlag.UNSET:
                return self.accelerator
