"""The hypervisors that nodes have a driver for; one more is one more line."""

from collections.abc import Callable, Mapping

from noded.hypervisor.interface import Hypervisor, Surroundings
from noded.hypervisor.kvm.driver import KvmHypervisor

DRIVERS: Mapping[str, Callable[[Surroundings], Hypervisor]] = {"kvm": KvmHypervisor}


def hypervisors(node: Surroundings) -> dict[str, Hypervisor]:
    """Return the drivers of a node, by the names of their hypervisors."""
    return {name: driver(node) for name, driver in DRIVERS.items()}
