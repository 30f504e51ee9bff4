"""QEMU's command line: values in, arguments out.

Devices and disks are given as JSON, which needs no quoting; what cannot be JSON goes through
``_quoted``. Source: qemu(1) and docs/interop/qemu-qmp-ref of QEMU 7.2.
"""

import json
import shlex
from typing import Any, NamedTuple

from common.model.kvm import KvmParameters
from common.model.kvm_words import Accelerator, Firmware, RebootBehavior
from common.noderpc.instances import GuestSpec
from noded.hypervisor.kvm import disk_devices, drives, fixed_devices, nic_devices, ram
from noded.hypervisor.kvm.bus import ports
from noded.hypervisor.kvm.displays import display
from noded.hypervisor.kvm.firmware import flash_nodes, flash_of, locked
from noded.hypervisor.kvm.handed import Handed
from noded.hypervisor.kvm.processors import topology

# The oldest QEMU we support has it and every later one too, so that guests can move between
# nodes of different versions; the alias "pc" means another machine in each.
DEFAULT_MACHINE = "pc-i440fx-7.2"

# No new programs, no more rights, no obsolete system calls: what a guest that breaks out of
# its machine would reach for. This is why QEMU's own -daemonize, which forks, is not used.
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

ENDS = "qemu_system_shutdown_request"  # an event that QEMU writes into its log, with the reason

PROBE_CPU_S = 2  # seconds of processor time; a KVM that works needs a twentieth of this
PROBE_PASSED = 33  # status that isa-debug-exit makes of the 0x10 the boot sector writes


def guest(
    spec: GuestSpec,
    parameters: KvmParameters,
    *,
    program: str,
    accelerator: Accelerator,
    handed: Handed,
    home: str,
    huge_page: int = 0,
    incoming: bool,
    paused: bool = False,
) -> tuple[str, ...]:
    """Return the command that runs a guest in the foreground.

    Args:
        spec: the guest; each of its disks and nics has a slot.
        parameters: its ``parameters``, checked.
        program: where its QEMU really is.
        accelerator: KVM or TCG.
        handed: all that it has of this node.
        home: its directory, which says whose process it is, and that QEMU does not use.
        huge_page: size of the pages of its memory, in bytes; 0 for the usual ones.
        incoming: wait for the memory of a running guest instead of booting, and when it is
            there, to be told to run ("-S"): the source may still find that it has to go on.
        paused: do nothing before it is told to run, either.
    """
    machine = {
        "type": machine_of(parameters),
        "accel": accelerator.value,
        "acpi": "on" if parameters.acpi else "off",
        **flash_of(handed.firmware),
        **({"smm": "on"} if parameters.firmware is Firmware.SECURE_BOOT else {}),
        **({"memory-backend": ram.BACKEND} if huge_page else {}),
    }
    kind = machine_of(parameters)
    devices = (
        *ports(kind),
        *drives.controller(parameters, kind),
        *fixed_devices.devices(parameters, kind),
    )
    return (
        program,
        *("-name", f"guest={quoted(spec.name)},debug-threads=on"),
        *("-uuid", spec.id),
        *("-machine", ",".join(f"{key}={quoted(value)}" for key, value in machine.items())),
        *(("-cpu", parameters.cpu_type) if parameters.cpu_type else ()),
        *ram.options(spec, accelerator, parameters.firmware, huge_page),
        *("-smp", topology(parameters, spec.vcpus)),
        *("-nodefaults", "-no-user-config", "-msg", "timestamp=on", "-sandbox", _SANDBOX),
        *("-chardev", f"socket,id=qmp,fd={handed.qmp},server=on,wait=off"),
        *("-mon", "chardev=qmp,mode=control"),
        *("-chardev", f"socket,id=news,fd={handed.news},server=on,wait=off"),
        *("-mon", "chardev=news,mode=control"),
        *_serial(parameters, handed, home),
        *_agent(handed),
        *_tpm(handed),
        *_firmware(parameters, handed),
        *display(parameters, spec.port, home),
        *_kernel(parameters, handed),
        *fixed_devices.options(parameters),
        *(word for device in devices for word in _device(device)),
        *(each for i in range(len(handed.images)) for each in _drive(parameters, handed, i)),
        *(each for i in range(len(spec.disks)) for each in _disk(spec, parameters, handed, i)),
        *(each for i in range(len(spec.nics)) for each in _nic(spec, parameters, handed, i)),
        *(("-rtc", "base=localtime") if parameters.use_localtime else ()),
        *(("-no-reboot",) if parameters.reboot_behavior is RebootBehavior.EXIT else ()),
        *(("-trace", ENDS) if parameters.user_shutdown else ()),
        *shlex.split(parameters.kvm_extra),
        *(("-S",) if incoming or paused else ()),
        *(("-incoming", "defer") if incoming else ()),
    )


def machine_of(parameters: KvmParameters) -> str:
    """Return the kind of machine that a guest has."""
    return parameters.machine_version or DEFAULT_MACHINE


def version(program: str) -> tuple[str, ...]:
    """Return the command that prints QEMU's version."""
    return (program, "--version")


def probe(program: str, accelerator: Accelerator, boot_sector: str) -> tuple[str, ...]:
    """Return the command that runs ``boot_sector``; it ends with ``PROBE_PASSED`` if all is well.

    It is killed when it has used ``PROBE_CPU_S`` of processor time rather than of waiting, so a
    busy node does not make KVM look broken.
    """
    return (
        *("prlimit", f"--cpu={PROBE_CPU_S}:{PROBE_CPU_S}", "--core=0", "--", program),
        *("-machine", f"{DEFAULT_MACHINE},accel={accelerator.value}", "-m", "16"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-device", "isa-debug-exit,iobase=0xf4"),
        *("-drive", f"if=floppy,format=raw,readonly=on,file={quoted(boot_sector)}"),
        *("-boot", "a"),
    )


def _serial(parameters: KvmParameters, handed: Handed, home: str) -> tuple[str, ...]:
    """Return the serial console; without one, what says whose process it is, all the same."""
    log = _add(handed.serial_log)
    named = ("-add-fd", f"{log.option},opaque={quoted(home)}")
    if not parameters.serial_console:
        return named
    return (
        *named,
        "-chardev",
        f"socket,id=serial0,fd={handed.serial},server=on,wait=off,logfile={log.path},logappend=on",
        *("-device", _json(driver="isa-serial", chardev="serial0")),
    )


def _agent(handed: Handed) -> tuple[str, ...]:
    if handed.agent is None:
        return ()
    return ("-chardev", f"socket,id=agent,fd={handed.agent},server=on,wait=off")


def _tpm(handed: Handed) -> tuple[str, ...]:
    if handed.tpm is None:
        return ()
    return (
        *("-chardev", f"socket,id=tpm,fd={handed.tpm.line}"),
        *("-tpmdev", "emulator,id=tpm,chardev=tpm"),
        *("-device", _json(driver="tpm-tis", tpmdev="tpm")),
    )


def _firmware(parameters: KvmParameters, handed: Handed) -> tuple[str, ...]:
    if handed.firmware is None:
        return ()
    added = (word for number in handed.firmware for word in ("-add-fd", _add(number).option))
    nodes = (
        word for node in flash_nodes(handed.firmware) for word in ("-blockdev", json.dumps(node))
    )
    return (*locked(parameters.firmware), *added, *nodes)


def _drive(parameters: KvmParameters, handed: Handed, index: int) -> tuple[str, ...]:
    image = handed.images[index]
    node = drives.block_node(index, image)
    device = drives.drive(index, parameters, machine_of(parameters))
    return ("-add-fd", _add(image).option, "-blockdev", json.dumps(node), *_device(device))


def _kernel(parameters: KvmParameters, handed: Handed) -> tuple[str, ...]:
    if handed.kernel is None:
        return ()
    console = f"console=ttyS0,{parameters.serial_speed}" if parameters.serial_console else ""
    root = f"root={parameters.root_path}" if parameters.root_path else ""
    line = " ".join(word for word in (root, parameters.kernel_args, console) if word)
    initrd = () if handed.initrd is None else ("-initrd", _own(handed.initrd))
    return ("-kernel", _own(handed.kernel), *initrd, "-append", line)


def _disk(
    spec: GuestSpec, parameters: KvmParameters, handed: Handed, index: int
) -> tuple[str, ...]:
    disk, source = spec.disks[index], handed.disks[index]
    slot, machine = spec.slots[disk.id], machine_of(parameters)
    node = disk_devices.block_node(disk, slot, source, parameters)
    device = disk_devices.device(disk, slot, parameters, machine, is_first=index == 0)
    drive = ("-blockdev", json.dumps(node), "-device", _json(**device))
    return ("-add-fd", _add(source.fdset).option, *drive)


def _nic(spec: GuestSpec, parameters: KvmParameters, handed: Handed, index: int) -> tuple[str, ...]:
    nic = spec.nics[index]
    slot, machine = spec.nic_slots[nic.id], machine_of(parameters)
    backend = nic_devices.backend(slot, handed.taps[index].named())
    device = nic_devices.device(nic, slot, parameters, machine, is_first=index == 0)
    return ("-netdev", _json(**backend), *_device(device))


class _Added(NamedTuple):
    """A descriptor as QEMU's own code opens it: by a name that is no file."""

    option: str
    path: str


def _add(descriptor: int) -> _Added:
    return _Added(f"fd={descriptor},set={descriptor}", f"/dev/fdset/{descriptor}")


def _own(descriptor: int) -> str:
    """Return the path of a descriptor for code that knows real files only."""
    return f"/proc/self/fd/{descriptor}"


def _device(options: dict[str, Any]) -> tuple[str, str]:
    return ("-device", _json(**options))


def _json(**options: Any) -> str:
    return json.dumps(options)


def quoted(value: str) -> str:
    """Escape a value inside QEMU's ``key=value,…`` syntax, where a comma is doubled."""
    return value.replace(",", ",,")
