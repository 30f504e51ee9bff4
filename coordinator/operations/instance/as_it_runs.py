"""A guest as it runs, which may be otherwise than it is configured by now."""

from msgspec.structs import replace

from common.errors import Conflict
from common.model.hypervisors import (
    HYPERVISORS,
    fingerprint,
    hypervisor_parameters,
    told,
)
from common.noderpc.instances import GuestReport, GuestSpec

NOTHING = fingerprint("")  # of a parameter that its node was not told of


def check_unchanged(guest: GuestSpec, found: GuestReport) -> None:
    """Refuse a guest that was made otherwise than its target would be: its memory would not fit.

    Raises:
        Conflict: says what was changed since it was started.
    """
    if not found.memory:  # noded has lost its record of it
        return
    if found.nic_slots is None or (guest.disks and found.disks is None):
        raise Conflict(
            f"Instance {guest.name} was started by an older version, which does not tell where in "
            f"its machine its devices are: reboot it with “gnt-instance reboot {guest.name}” "
            "first, or move it with “gnt-instance failover”.",
            instance=guest.name,
        )
    differs = {
        "memory": guest.memory != found.memory,
        "processors": guest.vcpus != found.vcpus,
        "nics": {nic.id for nic in guest.nics} != found.nic_slots.keys(),
        "disks": {disk.id for disk in guest.disks} != (found.disks or {}).keys(),
    }
    kind = HYPERVISORS[guest.hypervisor]
    differs |= {
        name: fingerprint(guest.parameters.get(name, "")) != found.compared.get(name, NOTHING)
        for name in sorted(kind.compared & (found.compared.keys() | kind.newer))
    }
    if changed := [what for what, does in differs.items() if does]:
        raise Conflict(
            f"Instance {guest.name} was given other {' and '.join(changed)} since it was started, "
            f"and its target would make it like that: reboot it with “gnt-instance reboot "
            f"{guest.name}” first, or move it with “gnt-instance failover”.",
            instance=guest.name,
        )


def as_it_runs(guest: GuestSpec, found: GuestReport) -> GuestSpec:
    """Have the target run it in the way the source does, whatever it would choose by itself.

    Raises:
        InvalidRequest: what its node tells of it makes no sense.
    """
    kind = HYPERVISORS[guest.hypervisor]
    names = kind.pinned & found.pinned.keys()
    pinned = {name: found.pinned[name] for name in names}
    what = f"what its node tells of {guest.name}"
    parameters = told(hypervisor_parameters(guest.hypervisor, guest.parameters, pinned, what=what))
    return replace(
        guest,
        parameters=parameters,
        nics=tuple(replace(nic, queues=kind.queues_of(parameters)) for nic in guest.nics),
        slots=found.disks or {},
        nic_slots=found.nic_slots or {},
        wanted_memory=found.wanted_memory,
    )
