"""Hypervisors and their parameters (``hvparams``), with Ganeti's names and meanings.

A parameter is declared in the class of its hypervisor, and used by its driver on the node; command
line, queries and checks derive from the declaration. ``pinned`` names those that a running guest
keeps when it moves, whatever is configured by then and whatever its target would choose;
``compared`` those that have to be as they were when it was started; ``newer`` those that nodes are
not told of where they are empty, as an older one does not know them.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from common.errors import InvalidRequest
from common.messages import Order, to_builtins, to_json
from common.model.kvm import KvmParameters
from common.model.kvm_words import POST_COPY, MigrationMode, NicType, ways_of
from common.model.parameters import Layer, filled


class FakeParameters(Order):
    """Those of ``fake``, the hypervisor that only pretends."""

    pinned: ClassVar[frozenset[str]] = frozenset()
    compared: ClassVar[frozenset[str]] = frozenset()
    newer: ClassVar[frozenset[str]] = frozenset()

    migration_mode: MigrationMode = MigrationMode.LIVE


HYPERVISORS: dict[str, type[KvmParameters | FakeParameters]] = {
    "kvm": KvmParameters,
    "fake": FakeParameters,
}


def fingerprint(value: object) -> str:
    """Return what tells a parameter's value from others, without telling it."""
    return hashlib.sha256(to_json(value)).hexdigest()[:16]


def told(parameters: KvmParameters | FakeParameters) -> Layer:
    """Return filled parameters as nodes are told of them."""
    every: Layer = to_builtins(parameters)
    return {name: value for name, value in every.items() if value or name not in parameters.newer}


def queues_of(parameters: Layer) -> int:
    """Return how many queues each nic of a guest with these filled parameters has."""
    if parameters.get("nic_type") != NicType.PARAVIRTUAL:
        return 1
    return int(parameters.get("virtio_net_queues", 1))


def is_moved_by_post_copy(parameters: Mapping[str, Any]) -> bool:
    """Tell whether a guest with these filled parameters moves before all its memory does."""
    return POST_COPY in ways_of(parameters.get("migration_caps", ""))


def check_hypervisor(name: str) -> None:
    """Refuse a hypervisor that nobody knows.

    Raises:
        InvalidRequest: tells which there are.
    """
    if name not in HYPERVISORS:
        known = ", ".join(sorted(HYPERVISORS))
        raise InvalidRequest(f"There is no hypervisor “{name}”; known are {known}.")


def hypervisor_parameters(
    hypervisor: str, *layers: Layer, what: str
) -> KvmParameters | FakeParameters:
    """Return the filled parameters of ``hypervisor``; see ``parameters.filled``.

    Raises:
        InvalidRequest: no such hypervisor, or a parameter does not fit it.
    """
    check_hypervisor(hypervisor)
    return filled(HYPERVISORS[hypervisor], *layers, what=what)
