"""The parameters of a guest: as they are configured, and as it was started with them."""

from common.messages import from_builtins
from common.model.kvm import KvmParameters
from common.noderpc.instances import GuestSpec
from noded.hypervisor.kvm.home import Record


def parameters_of(guest: GuestSpec) -> KvmParameters:
    """Return the parameters of a guest, checked.

    Raises:
        InvalidRequest: one makes no sense.
    """
    what = f"the hypervisor parameters of {guest.name}"
    return from_builtins(guest.parameters, KvmParameters, what=what)


def running_parameters(record: Record, guest: GuestSpec) -> KvmParameters:
    """Return the parameters that a guest was started with, whatever is configured by now.

    An older version has not written them down; then they are taken to be as they are configured.
    """
    what = f"the hypervisor parameters with which {guest.name} was started"
    return from_builtins(record.parameters or guest.parameters, KvmParameters, what=what)
