"""What a QEMU is told once it is up: passwords of displays, and where its processors run."""

import os
from typing import NamedTuple

from msgspec.structs import replace

from common.cpu_mask import ALL
from common.model.kvm import KvmParameters
from noded.hypervisor.kvm.display_tls import SPICE, VNC
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.lending import take_back
from noded.hypervisor.kvm.monitor import Monitor, monitor
from noded.hypervisor.kvm.parse import parse_display, parse_spice, parse_threads
from noded.hypervisor.kvm.processors import pinning


class Passwords(NamedTuple):
    """Of displays; empty where everybody gets in."""

    vnc: str
    spice: str


async def finish(
    home: Home, record: Record, parameters: KvmParameters, passwords: Passwords
) -> Record:
    """Let in who knows a password, place the processors, and find out where the display is.

    What was lent to show at displays is taken back.

    Passwords go over the monitor: what is in a command line everybody can read.

    Returns:
        The guest's record, with its display.
    """
    for name in (VNC, SPICE):  # QEMU has read them
        take_back(home.directory / name)
    async with monitor(home.qmp_socket, record.name) as session:
        for protocol, password in passwords._asdict().items():
            if password:
                await session.ask("set_password", protocol=protocol, password=password)
        if parameters.cpu_mask != ALL:
            await _pin(session, parameters)
        if parameters.spice_bind:
            display = parse_spice(await session.ask("query-spice"))
        elif parameters.vnc_bind_address:
            display = parse_display(await session.ask("query-vnc"))
        else:
            return record
    return replace(record, display=display, display_wants_password=any(passwords))


async def _pin(session: Monitor, parameters: KvmParameters) -> None:
    threads = parse_threads(await session.ask("query-cpus-fast"))
    allowed = frozenset(os.sched_getaffinity(0))
    for thread, processors in pinning(parameters, threads, allowed).items():
        os.sched_setaffinity(thread, processors)
