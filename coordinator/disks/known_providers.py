"""Which providers of external storage nodes and groups can use, in Ganeti's form."""

from collections.abc import Iterable, Mapping
from typing import Any

from common.model.group import Group
from common.model.node import Node
from common.names import NodeName
from common.natural import natural_key
from common.noderpc.providers import ProviderReport

FIELDS = ("name", "node_status", "nodegroup_status", "parameters")

Told = Mapping[NodeName, Mapping[str, ProviderReport]]
"""The providers of each node that answers, by their names."""


def known_providers(
    told: Told, groups: Iterable[Group], nodes: Iterable[Node]
) -> list[dict[str, Any]]:
    """Return what there is to tell of each provider, by ``FIELDS``.

    Args:
        told: what nodes answered.
        groups: all of the cluster.
        nodes: those that may have instances and are in service, whether they answer or not.
    """
    every, hosts = tuple(groups), list(nodes)
    names = {provider for there in told.values() for provider in there}
    return [_row(provider, every, hosts, told) for provider in sorted(names, key=natural_key)]


def _row(provider: str, groups: tuple[Group, ...], nodes: list[Node], told: Told) -> dict[str, Any]:
    """Tell of one provider in Ganeti's form; a group can use it if each of its nodes can."""
    found = {name: there.get(provider) for name, there in told.items()}
    usable = {name for name, each in found.items() if each is not None and not each.problem}
    members = {group.name: [n.name for n in nodes if n.group == group.uuid] for group in groups}
    return {
        "name": provider,
        "node_status": {
            name: [] if each is None else [_status(each)] for name, each in sorted(found.items())
        },
        "nodegroup_status": {
            group: bool(names) and usable.issuperset(names) for group, names in members.items()
        },
        "parameters": _common(each for name, each in found.items() if each and name in usable),
    }


def _status(found: ProviderReport) -> list[Any]:
    parameters = [list(each) for each in found.parameters]
    return [found.path, not found.problem, found.problem, parameters]


def _common(found: Iterable[ProviderReport]) -> list[list[str]]:
    """Return the parameters that a provider has wherever it can be used."""
    every = [each.parameters for each in found]
    if not every:
        return []
    return [list(each) for each in every[0] if all(each in others for others in every)]
