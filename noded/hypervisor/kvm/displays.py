"""Where a guest's display is, and what it is like. Source: qemu(1), qemu-options.hx of 7.2."""

import json

from common.model.kvm import KvmParameters
from common.model.kvm_words import Display
from noded.hypervisor.kvm.display_tls import CREDENTIALS, spice_options, vnc_credentials

VNC_BASE = 5900  # of which displays are counted


def display(parameters: KvmParameters, port: int, home: str) -> tuple[str, ...]:
    """Return the options for a guest's displays.

    Args:
        parameters: of the guest.
        port: where they are offered; 0 for the first that is free, which only VNC can find.
        home: the guest's directory, where certificates are lent to it.
    """
    return (
        *("-display", "none", "-vga", card(parameters)),
        *(("-k", parameters.keymap) if parameters.keymap else ()),
        *_vnc(parameters, port, home),
        *_spice(parameters, port, home),
    )


def card(parameters: KvmParameters) -> str:
    """Return the kind of graphics card that a guest gets, if nobody says which."""
    if parameters.vga is not Display.UNSET:
        return parameters.vga.value
    if parameters.spice_bind:
        return "qxl"
    return "std" if parameters.vnc_bind_address else "none"


def _vnc(parameters: KvmParameters, port: int, home: str) -> tuple[str, ...]:
    address = parameters.vnc_bind_address
    if not address:
        return ()
    host = f"[{address}]" if ":" in address else address
    # Beside SPICE, which takes the port, at the first that is free.
    where = (
        f"{host}:{port - VNC_BASE}" if port and not parameters.spice_bind else f"{host}:0,to=999"
    )
    # Until the password is told, over QMP, nobody gets in.
    locked = ",password=on" if parameters.vnc_password_file else ""
    if not parameters.vnc_tls:
        return ("-vnc", f"{where}{locked}")
    made = ("-object", json.dumps(vnc_credentials(parameters, home)))
    return (*made, "-vnc", f"{where}{locked},tls-creds={CREDENTIALS}")


def _spice(parameters: KvmParameters, port: int, home: str) -> tuple[str, ...]:
    if not parameters.spice_bind:
        return ()
    told = {
        "addr": parameters.spice_bind,
        **spice_options(parameters, port, home.replace(",", ",,")),
        "disable-ticketing": _flag(not parameters.spice_password_file),
        "ipv4": "on" if parameters.spice_ip_version == 4 else "",
        "ipv6": "on" if parameters.spice_ip_version == 6 else "",
        "image-compression": parameters.spice_image_compression.value,
        "jpeg-wan-compression": parameters.spice_jpeg_wan_compression.value,
        "zlib-glz-wan-compression": parameters.spice_zlib_glz_wan_compression.value,
        "streaming-video": parameters.spice_streaming_video.value,
        "playback-compression": _flag(parameters.spice_playback_compression),
        "agent-mouse": _flag(parameters.spice_use_vdagent),
    }
    return ("-spice", ",".join(f"{name}={value}" for name, value in told.items() if value))


def _flag(value: bool) -> str:
    return "on" if value else "off"
