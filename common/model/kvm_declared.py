"""What parameters ``kvm`` has, with Ganeti's names and meanings; those at the end are ours."""

from typing import Annotated

from msgspec import Meta

from common.model.any_hypervisor import HypervisorParameters, MigrationMode
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


class KvmDeclared(HypervisorParameters):
    """What each means is what the manual says of it.

    Attributes:
        acpi: Whether it has ACPI; without it, it cannot be asked to power off.
        boot_order: What it boots from without kernel_path: disk, cdrom or network.
        cdrom2_image_path: File on the node that is in its second CD drive.
        cdrom_disk_type: What its CD drives are plugged into: ide (default) or scsi.
        cdrom_image_path: File on the node that is in its CD drive, as an ISO image; the node's root
            says which files may be.
        cpu_cores: Cores of each socket; 0: as QEMU chooses.
        cpu_mask: Processors of the node that its own run on: all, 0-3,^2 for all of them, or a list
            for each, with colons between.
        cpu_sockets: Number of sockets; 0: as QEMU chooses.
        cpu_threads: Threads of each core; 0: as QEMU chooses.
        cpu_type: Kind of processor, as qemu -cpu has it; none: QEMU's own choice.
        disk_aio: How QEMU reads and writes disks: threads, native or io_uring.
        disk_cache: Cache of its disks: default, none, writethrough or writeback.
        disk_discard: What becomes of what it discards: unmap (default) gives it back, ignore does
            not.
        disk_type: What its disks are: paravirtual (virtio), ide (at most four, and none comes while
            it runs) or scsi.
        floppy_image_path: Ganeti's; no guest has a floppy drive.
        initrd_path: File on the node with the initial RAM disk; goes with kernel_path.
        kernel_args: Words for the kernel of kernel_path.
        kernel_path: File on the node with a kernel to boot; none: firmware boots from boot_order.
        keymap: Keyboard of its display, as de or en-gb.
        kvm_extra: Further options of QEMU, as in a shell; the node's root has to allow any.
        kvm_flag: Ganeti's way to say accelerator: enabled is kvm, disabled is tcg.
        kvm_path: The QEMU program; the node's root says which may be used.
        kvm_pci_reservations: Ganeti's; there are places for 16 disks and 8 nics.
        machine_version: Kind of machine, as qemu -machine has it; none: QEMU's newest.
        mem_path: Where huge pages are mounted on the node, of which its memory is made; none: usual
            pages.
        migration_bandwidth: At most so many MiB a second while it is migrated.
        migration_caps: Ways of migrating it besides, with colons: xbzrle sends of a page what has
            changed only; with postcopy-ram it goes on at its target when all memory was sent once
            and is lost if either node dies before the rest has come; auto-converge, which slows it
            down where that is needed, is always used.
        migration_downtime: At most so many milliseconds of standstill at the end of a migration.
        migration_mode: Whether it runs while it is migrated: live, or non-live.
        nic_type: Kind of network card: paravirtual (virtio), e1000, rtl8139, pcnet, ne2k_pci,
            i82551, i82557b or i82559er.
        reboot_behavior: What a reboot from within does: reboot, or exit, which ends it.
        root_path: Root file system that the kernel of kernel_path is told, as root=.
        scsi_controller_type: Controller of what is SCSI: lsi (six disks), megasas or virtio-scsi-
            pci.
        security_domain: Ganeti's; the name that goes with security_model=user.
        security_model: Each guest is run by a user of its own: none and user; with pool by one of
            the cluster's pool of user ids.
        serial_console: Whether it has a serial port, which gnt-instance console shows.
        serial_speed: Speed of that port, told to the kernel of kernel_path.
        soundhw: Sound card: ac97, es1370 or hda; heard through SPICE, or nowhere.
        spice_bind: IP address at which its display is offered by SPICE; without a
            spice_password_file 127.0.0.1 or ::1.
        spice_image_compression: How SPICE compresses images: auto_glz, auto_lz, quic, glz, lz or
            off.
        spice_ip_version: 4 or 6, which spice_bind has to be; 0: either.
        spice_jpeg_wan_compression: When SPICE sends JPEG to those far away: auto, never or always.
        spice_password_file: File on the node with the password of its SPICE display; see
            vnc_password_file.
        spice_playback_compression: Whether SPICE compresses sound.
        spice_streaming_video: What SPICE takes for video: off, all or filter.
        spice_tls_ciphers: What a SPICE display may be encrypted with, as openssl-ciphers(1) has it.
        spice_use_tls: Whether its SPICE display is encrypted; root of each node says in
            /etc/gantry/guests where its certificate is.
        spice_use_vdagent: Whether the SPICE agent in the guest has a line to the viewer.
        spice_zlib_glz_wan_compression: When SPICE uses zlib over glz for those far away: auto,
            never or always.
        usb_devices: USB devices, with commas: keyboard, mouse, tablet, wacom-tablet.
        usb_mouse: Its pointer on USB: mouse, or tablet, which follows a viewer's exactly.
        use_chroot: Whether QEMU has a root directory of its own, with programs and libraries only.
        use_guest_agent: Whether it has a line to qemu-guest-agent in the guest.
        use_localtime: Whether its clock shows the node's time zone.
        user_shutdown: Ganeti's; what was turned off from within is started again by the watcher.
        vga: Kind of graphics card: none, std, cirrus, vmware, qxl or virtio; not told: none, std
            with VNC, qxl with SPICE.
        vhost_net: Whether the node's kernel copies packets of its nics (module vhost_net).
        virtio_net_queues: Queues of each paravirtual nic, 1 to 8: so many processors send and
            receive at once.
        vnc_bind_address: Address at which its display is offered; none: no display. Without a
            vnc_password_file it is 127.0.0.1 or ::1.
        vnc_password_file: File on the node with the password of its display, which root of the node
            has to allow in /etc/gantry/guests.
        vnc_tls: Whether its VNC display is encrypted; without a vnc_x509_path nobody proves who
            he is.
        vnc_x509_path: Directory on the node with ca-cert.pem, server-cert.pem and server-key.pem,
            which root of the node allows, for a VNC display that is encrypted.
        vnc_x509_verify: Whether viewers have to show a certificate that ca-cert.pem has signed.
        vnet_hdr: Ganeti's; taps always leave checksums and segmenting to the host.
        accelerator: How its processors are run: kvm, tcg, or auto, which takes KVM where it works.
        firmware: What it starts with: bios, uefi, or secure-boot, which is UEFI that starts only
            what is signed, on a machine_version as pc-q35-7.2. Needs the package ovmf on its nodes.
            Its variables begin anew with each start.
        rng: Whether it gets random numbers from the node, by virtio.
        tpm: Name of the disk on which its TPM keeps its state, and which it does not see; none: no
            TPM. Needs the package swtpm on its nodes.
    """

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
