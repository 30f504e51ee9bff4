"""What a node tells of one of its guests."""

import os
from typing import Any

from common.model.hypervisors import fingerprint
from common.model.kvm import KvmParameters
from common.names import InstanceName, MiB
from common.noderpc.guest_agent import Interface
from common.noderpc.instances import GuestReport, GuestState
from noded.hypervisor.kvm.agents import Agents
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.looks import look
from noded.hypervisor.kvm.memory import used_memory
from noded.hypervisor.kvm.parse import parse_cpu_ticks, was_turned_off
from noded.hypervisor.kvm.pulse import Pulses
from noded.machine.parse import parse_statm


async def report(home: Home, pulses: Pulses, agents: Agents) -> GuestReport | None:
    """Look at a guest among others; None for one that is forgotten."""
    seen = await look(home, pulses, listing=True)
    if seen is None:
        return None
    silent_s = pulses.silent_s(home.instance)
    record = home.record()
    if record is None:  # its process is there, so it must not be left out
        return GuestReport(
            id=home.instance,
            name=InstanceName(home.instance),
            state=seen.state,
            memory=MiB(0),
            vcpus=0,
            silent_s=silent_s,
        )
    patience_s = pulses.patience_s(home.instance, listing=True) if seen.state.is_alive else 0.0
    return GuestReport(
        id=record.id,
        name=record.name,
        state=seen.state,
        memory=record.memory,
        vcpus=record.vcpus,
        nics=record.nics,
        disks=record.disks,
        nic_slots=record.nic_slots,
        wanted_memory=record.wanted_memory,
        used_memory=await used_memory(home, record, patience_s) if patience_s else MiB(0),
        cpu_seconds=_cpu_seconds(home),
        resident=_resident(home),
        pinned=_pinned(record),
        compared=_compared(record),
        display=record.display,
        display_wants_password=record.display_wants_password,
        move=home.left_by if seen.state is GuestState.MIGRATED else record.receives,
        arrived=seen.arrived,
        lacks_space=seen.lacks_space,
        user_down=seen.state is GuestState.STOPPED and _was_turned_off(home, record),
        held=record.held and seen.state is GuestState.PAUSED,
        lost_tpm=seen.state.is_alive and home.lost_tpm,
        interfaces=await _interfaces(home, record, seen.state, agents),
        rest=seen.rest,
        silent_s=silent_s,
    )


async def _interfaces(
    home: Home, record: Record, state: GuestState, agents: Agents
) -> tuple[Interface, ...] | None:
    if state is not GuestState.RUNNING or not record.has_agent:
        return None
    return await agents.interfaces(home, record.name)


def _was_turned_off(home: Home, record: Record) -> bool:
    """Tell whether a guest has ended by its user's wish, and by nobody's order."""
    if not record.parameters.get("user_shutdown") or home.is_button_pressed:
        return False
    return was_turned_off(home.last_words())


def _pinned(record: Record) -> dict[str, Any]:
    """Return what makes the guest's machine; of an older version's, all that is known of it."""
    names = KvmParameters.pinned & record.parameters.keys()
    return {name: record.parameters[name] for name in names} | {"accelerator": record.accelerator}


def _compared(record: Record) -> dict[str, str]:
    names = KvmParameters.compared & record.parameters.keys()
    return {name: fingerprint(record.parameters[name]) for name in names}


def _cpu_seconds(home: Home) -> float:
    found = home.process()
    if found is None:
        return 0.0
    with found:
        return parse_cpu_ticks(found.stat()) / os.sysconf("SC_CLK_TCK")


def _resident(home: Home) -> MiB:
    found = home.process()
    if found is None:
        return MiB(0)
    with found:
        return parse_statm(found.statm(), os.sysconf("SC_PAGE_SIZE"))
