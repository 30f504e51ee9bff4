"""Hypervisors and their parameters (``hvparams``), with Ganeti's names and meanings.

A parameter is declared in the class of its hypervisor, and used by its driver on the node; command
line, queries and checks derive from the declaration. What others want to know of them they ask
it by the questions of ``HypervisorParameters``, and read none by its name.
"""

import hashlib

from common.errors import InvalidRequest
from common.messages import to_builtins, to_json
from common.model.any_hypervisor import HypervisorParameters, MigrationMode
from common.model.kvm import KvmParameters
from common.model.parameters import Layer, filled


class FakeParameters(HypervisorParameters):
    """Those of ``fake``, the hypervisor that only pretends."""

    migration_mode: MigrationMode = MigrationMode.LIVE


HYPERVISORS: dict[str, type[HypervisorParameters]] = {
    "kvm": KvmParameters,
    "fake": FakeParameters,
}


def fingerprint(value: object) -> str:
    """Return what tells a parameter's value from others, without telling it."""
    return hashlib.sha256(to_json(value)).hexdigest()[:16]


def told(parameters: HypervisorParameters) -> Layer:
    """Return filled parameters as nodes are told of them."""
    every: Layer = to_builtins(parameters)
    return {name: value for name, value in every.items() if value or name not in parameters.newer}


def check_hypervisor(name: str) -> None:
    """Refuse a hypervisor that nobody knows.

    Raises:
        InvalidRequest: tells which there are.
    """
    if name not in HYPERVISORS:
        known = ", ".join(sorted(HYPERVISORS))
        raise InvalidRequest(f"There is no hypervisor “{name}”; known are {known}.")


def hypervisor_parameters(hypervisor: str, *layers: Layer, what: str) -> HypervisorParameters:
    """Return the filled parameters of ``hypervisor``; see ``parameters.filled``.

    Raises:
        InvalidRequest: no such hypervisor, or a parameter does not fit it.
    """
    check_hypervisor(hypervisor)
    return filled(HYPERVISORS[hypervisor], *layers, what=what)
