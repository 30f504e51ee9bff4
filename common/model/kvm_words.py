"""What parameters of ``kvm`` can be, where that is one of a few words."""

from enum import StrEnum


class Accelerator(StrEnum):
    """How a guest's processor is run; ``auto`` takes KVM where it was seen working."""

    AUTO = "auto"
    KVM = "kvm"
    TCG = "tcg"


class KvmFlag(StrEnum):
    """Ganeti's way to say it; as ``accelerator`` says, if empty."""

    UNSET = ""
    ENABLED = "enabled"
    DISABLED = "disabled"


class BootOrder(StrEnum):
    DISK = "disk"
    CDROM = "cdrom"
    NETWORK = "network"


class Firmware(StrEnum):
    BIOS = "bios"
    UEFI = "uefi"
    SECURE_BOOT = "secure-boot"  # UEFI that starts only what is signed, by Microsoft's keys


class NicType(StrEnum):
    PARAVIRTUAL = "paravirtual"
    E1000 = "e1000"
    I82551 = "i82551"
    I82557B = "i82557b"
    I82559ER = "i82559er"
    NE2K_PCI = "ne2k_pci"
    PCNET = "pcnet"
    RTL8139 = "rtl8139"


class DiskType(StrEnum):
    PARAVIRTUAL = "paravirtual"
    IDE = "ide"
    SCSI = "scsi"
    SCSI_HD = "scsi-hd"  # the same, by the name of QEMU's device


class DriveType(StrEnum):
    """Of CD drives."""

    UNSET = ""  # ide
    IDE = "ide"
    SCSI = "scsi"
    SCSI_CD = "scsi-cd"  # the same, by the name of QEMU's device


class ScsiController(StrEnum):
    LSI = "lsi"
    MEGASAS = "megasas"
    VIRTIO = "virtio-scsi-pci"


class DiskAio(StrEnum):
    THREADS = "threads"
    NATIVE = "native"
    IO_URING = "io_uring"


class DiskCache(StrEnum):
    """Whether the node's page cache is used, and whether a write is done once it is there."""

    DEFAULT = "default"
    NONE = "none"
    WRITEBACK = "writeback"
    WRITETHROUGH = "writethrough"


class DiskDiscard(StrEnum):
    """Whether what a guest does not need any more is given back to whoever keeps its disks."""

    DEFAULT = "default"  # given back; Ganeti leaves that to QEMU, which does not
    IGNORE = "ignore"
    UNMAP = "unmap"


class UsbMouse(StrEnum):
    UNSET = ""
    MOUSE = "mouse"
    TABLET = "tablet"


class Sound(StrEnum):
    UNSET = ""
    AC97 = "ac97"
    ES1370 = "es1370"
    HDA = "hda"


class Display(StrEnum):
    """Kinds of graphics cards."""

    UNSET = ""
    NONE = "none"
    STD = "std"
    CIRRUS = "cirrus"
    VMWARE = "vmware"
    QXL = "qxl"
    VIRTIO = "virtio"


class RebootBehavior(StrEnum):
    REBOOT = "reboot"
    EXIT = "exit"


class SpiceImages(StrEnum):
    UNSET = ""
    AUTO_GLZ = "auto_glz"
    AUTO_LZ = "auto_lz"
    GLZ = "glz"
    LZ = "lz"
    OFF = "off"
    QUIC = "quic"


class SpiceWan(StrEnum):
    UNSET = ""
    ALWAYS = "always"
    AUTO = "auto"
    NEVER = "never"


class SpiceVideo(StrEnum):
    UNSET = ""
    ALL = "all"
    FILTER = "filter"
    OFF = "off"


# Of the ways in which a guest can be migrated: it goes on elsewhere before all its memory is there.
POST_COPY = "postcopy-ram"


def ways_of(migration_caps: str) -> set[str]:
    """Return the ways in which a guest is to be migrated, as its parameter has them."""
    return set(filter(None, migration_caps.split(":")))
