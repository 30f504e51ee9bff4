"""Which values of the parameters of ``kvm`` fit together, and which nobody can be given."""

import re
import shlex
from collections.abc import Iterator
from ipaddress import ip_address

from common.cpu_mask import parse_cpu_mask
from common.model.kvm_declared import KvmDeclared
from common.model.kvm_words import (
    POST_COPY,
    Accelerator,
    BootOrder,
    DiskAio,
    DiskCache,
    Firmware,
    KvmFlag,
    ways_of,
)

# Ways in which QEMU can move a guest that we do not always have it use, or never switch off.
_MIGRATION_CAPS = frozenset({"auto-converge", "xbzrle", POST_COPY})
POOL = "pool"  # of user ids
_USER = "user"  # Ganeti's; more than that is so in any case
USB_DEVICES = ("keyboard", "mouse", "tablet", "wacom-tablet")
LOOPBACK = ("127.0.0.1", "::1")

_PATHS = (
    "cdrom2_image_path", "cdrom_image_path", "initrd_path", "kernel_path", "kvm_path", "mem_path",
    "spice_password_file", "vnc_password_file", "vnc_x509_path",
)  # fmt: skip
_KEYMAP = re.compile(r"[a-z]{2,3}(-[a-z]{2,10})?")
_CIPHERS = re.compile(r"[A-Za-z0-9_:+!@=.-]{1,500}")  # of openssl-ciphers(1)

# What is Ganeti's, and asks for something that no guest gets: only its default is taken.
_REFUSED = {
    "floppy_image_path": ("", "guests have no floppy drives: give it a CD image"),
    "kvm_pci_reservations": (12, "which places there are for disks and nics is fixed"),
    "vnet_hdr": (True, "the nics of the node have that header always"),
}


def check(parameters: KvmDeclared) -> None:
    """Refuse what nobody can be given, and what does not fit together.

    Raises:
        ValueError: says what, for the middle of a sentence.
    """
    for problem in _problems(parameters):
        raise ValueError(problem)
    parse_cpu_mask(parameters.cpu_mask)


def _problems(parameters: KvmDeclared) -> Iterator[str]:
    for name, (default, reason) in _REFUSED.items():
        if (value := getattr(parameters, name)) != default:
            yield f"{name} cannot be “{value}”: {reason}"
    for name in _PATHS:
        if (path := getattr(parameters, name)) and not path.startswith("/"):
            yield f"{name} has to be a whole path on the node, not “{path}”"
    yield from _of_starts(parameters)
    yield from _of_disks(parameters)
    yield from _of_devices(parameters)
    yield from _of_displays(parameters)


def _of_starts(parameters: KvmDeclared) -> Iterator[str]:
    if parameters.security_model not in ("none", POOL, _USER):
        yield (
            f"security_model cannot be “{parameters.security_model}”: each guest is run by a user "
            "of its own in any case, with “pool” by one of the cluster's pool"
        )
    if parameters.security_model == _USER and not parameters.security_domain:
        yield "security_model=user needs a security_domain, as with Ganeti"
    if parameters.security_domain and parameters.security_model != _USER:
        yield "security_domain is set, and security_model is not “user”; set both or neither"
    if parameters.initrd_path and not parameters.kernel_path:
        yield "initrd_path is set but kernel_path is not; set both or neither"
    if parameters.boot_order is BootOrder.CDROM and not parameters.cdrom_image_path:
        yield "boot_order is cdrom, and there is no cdrom_image_path to boot from"
    flag, wanted = parameters.kvm_flag, parameters.accelerator
    if flag and wanted not in (Accelerator.AUTO, parameters.wanted_accelerator):
        says = "KVM" if flag is KvmFlag.ENABLED else "no KVM"
        yield f"kvm_flag says {says}, and accelerator {wanted}; leave one of them out"
    if parameters.firmware is not Firmware.BIOS and parameters.kernel_path:
        yield f"firmware={parameters.firmware} boots no kernel_path; leave one of them out"
    if parameters.firmware is Firmware.SECURE_BOOT and "q35" not in parameters.machine_version:
        yield "firmware=secure-boot needs a machine_version of the kind pc-q35-7.2"
    try:
        shlex.split(parameters.kvm_extra)
    except ValueError:
        yield f"kvm_extra cannot be “{parameters.kvm_extra}”: a quote has no end"


def _of_disks(parameters: KvmDeclared) -> Iterator[str]:
    buffered = parameters.disk_cache not in (DiskCache.DEFAULT, DiskCache.NONE)
    if parameters.disk_aio is DiskAio.NATIVE and buffered:
        yield "disk_aio=native works with disk_cache none or default only"
    if parameters.cdrom2_image_path and not parameters.cdrom_image_path:
        yield "cdrom2_image_path is set but cdrom_image_path is not"


def _of_devices(parameters: KvmDeclared) -> Iterator[str]:
    unknown = ways_of(parameters.migration_caps) - _MIGRATION_CAPS
    if unknown:
        yield (
            f"migration_caps cannot have “{min(unknown)}”: there are "
            f"{', '.join(sorted(_MIGRATION_CAPS))}, with colons between"
        )
    if unknown := set(filter(None, parameters.usb_devices.split(","))) - set(USB_DEVICES):
        yield (
            f"usb_devices cannot have “{min(unknown)}”: there are {', '.join(USB_DEVICES)}, with "
            "commas between; devices of the node are not given to guests"
        )


def _of_displays(parameters: KvmDeclared) -> Iterator[str]:
    if parameters.keymap and not _KEYMAP.fullmatch(parameters.keymap):
        yield f"keymap cannot be “{parameters.keymap}”: give one as de or en-gb"
    for kind in ("vnc_bind_address", "spice_bind"):
        address = getattr(parameters, kind)
        secret = "vnc_password_file" if kind == "vnc_bind_address" else "spice_password_file"
        is_proven = kind == "vnc_bind_address" and _asks_for_certificates(parameters)
        if getattr(parameters, secret) or is_proven:
            if address and not _is_address(address):
                yield f"{kind} cannot be “{address}”: it is no IP address"
        elif address not in ("", *LOOPBACK):
            yield (
                f"{kind} cannot be “{address}”: without a {secret} a display has no password and "
                "is offered on 127.0.0.1 or ::1 only; use ssh to reach it"
            )
    if parameters.vnc_tls and parameters.vnc_x509_verify and not parameters.vnc_x509_path:
        yield "vnc_x509_verify needs a vnc_x509_path: viewers are held to its ca-cert.pem"
    if not _CIPHERS.fullmatch(parameters.spice_tls_ciphers):
        yield (
            f"spice_tls_ciphers cannot be “{parameters.spice_tls_ciphers}”: give them as to "
            "OpenSSL, as in “HIGH:-3DES”"
        )
    if parameters.spice_ip_version not in (0, 4, 6):
        yield f"spice_ip_version is 4 or 6, or 0 for any, not {parameters.spice_ip_version}"
    bind, version = parameters.spice_bind, parameters.spice_ip_version
    if bind and version and ip_address(bind).version != version:
        yield f"spice_bind is {bind}, which is no address of IPv{version} as spice_ip_version says"


def _asks_for_certificates(parameters: KvmDeclared) -> bool:
    """Tell whether VNC lets in nobody without a certificate."""
    return bool(parameters.vnc_tls and parameters.vnc_x509_verify and parameters.vnc_x509_path)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
