"""Devices that a guest has as long as it lives, beside its disks and nics."""

from collections.abc import Iterator
from typing import Any

from common.model.kvm import KvmParameters
from common.model.kvm_words import Sound, UsbMouse
from noded.hypervisor.kvm.bus import Fixed, fixed

AGENT_PORT = "org.qemu.guest_agent.0"  # by which the agent in the guest finds its line
_VDAGENT_PORT = "com.redhat.spice.0"
_USB = {
    "keyboard": "usb-kbd",
    "mouse": "usb-mouse",
    "tablet": "usb-tablet",
    "wacom-tablet": "usb-wacom-tablet",
}
_SOUND = {Sound.AC97: "AC97", Sound.ES1370: "ES1370", Sound.HDA: "intel-hda"}


def devices(parameters: KvmParameters, machine: str) -> Iterator[dict[str, Any]]:
    """Yield what a guest has; the character devices ``agent`` and ``vdagent`` are there."""
    yield {"driver": "virtio-balloon-pci", "id": "balloon", **fixed(machine, Fixed.BALLOON)}
    if parameters.rng:
        place = fixed(machine, Fixed.RNG)
        yield {"driver": "virtio-rng-pci", "id": "rng", "rng": "random", **place}
    yield from _lines(parameters, machine)
    for number, name in enumerate(usb_devices(parameters)):
        yield {"driver": _USB[name], "id": f"usb{number}"}
    if parameters.soundhw is not Sound.UNSET:
        yield from _sound(parameters.soundhw, machine)


def options(parameters: KvmParameters) -> tuple[str, ...]:
    """Return what has to be there before the devices."""
    return (
        *(("-object", "rng-builtin,id=random") if parameters.rng else ()),
        *(("-chardev", "spicevmc,id=vdagent,name=vdagent") if _has_vdagent(parameters) else ()),
        *(("-usb",) if usb_devices(parameters) else ()),
        # Heard where the display is, or nowhere.
        *(("-audiodev", _audio(parameters)) if parameters.soundhw is not Sound.UNSET else ()),
    )


def usb_devices(parameters: KvmParameters) -> tuple[str, ...]:
    """Return the names of a guest's USB devices, the mouse first."""
    mouse = [] if parameters.usb_mouse is UsbMouse.UNSET else [parameters.usb_mouse.value]
    others = filter(None, parameters.usb_devices.split(","))
    return tuple(dict.fromkeys((*mouse, *others)))


def _lines(parameters: KvmParameters, machine: str) -> Iterator[dict[str, Any]]:
    """Yield serial lines to agents in the guest."""
    if not parameters.use_guest_agent and not _has_vdagent(parameters):
        return
    yield {"driver": "virtio-serial-pci", "id": "lines", **fixed(machine, Fixed.SERIAL)}
    if parameters.use_guest_agent:
        yield _line(1, "agent", AGENT_PORT)
    if _has_vdagent(parameters):
        yield _line(2, "vdagent", _VDAGENT_PORT)


def _line(number: int, chardev: str, name: str) -> dict[str, Any]:
    line = {"driver": "virtserialport", "bus": "lines.0", "nr": number}
    return {**line, "chardev": chardev, "name": name}


def _has_vdagent(parameters: KvmParameters) -> bool:
    return bool(parameters.spice_bind) and parameters.spice_use_vdagent


def _audio(parameters: KvmParameters) -> str:
    return f"{'spice' if parameters.spice_bind else 'none'},id=sound"


def _sound(kind: Sound, machine: str) -> Iterator[dict[str, Any]]:
    card = {"driver": _SOUND[kind], "id": "card", **fixed(machine, Fixed.SOUND)}
    if kind is Sound.HDA:
        yield card
        yield {"driver": "hda-duplex", "bus": "card.0", "audiodev": "sound"}
    else:
        yield card | {"audiodev": "sound"}
