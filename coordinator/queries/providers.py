"""Providers of external storage, which only nodes know."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from common.errors import GntError
from coordinator.disks.known_providers import known_providers
from coordinator.queries.field import Field, Kind, Table, table
from coordinator.queries.source import Source


class ProviderRow:
    nodes = ()  # all have been asked

    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known = known


def _of(name: str) -> Callable[[ProviderRow], Any]:
    return lambda row: row.known[name]


# fmt: off
PROVIDER_FIELDS: Table[ProviderRow] = table((
    Field("name", "Name", Kind.TEXT, "ExtStorage provider name", _of("name")),
    Field("node_status", "NodeStatus", Kind.OTHER, "Status from node", _of("node_status")),
    Field("nodegroup_status", "NodegroupStatus", Kind.OTHER, "Overall Nodegroup status",
          _of("nodegroup_status")),
    Field("parameters", "Parameters", Kind.OTHER, "ExtStorage provider parameters",
          _of("parameters")),
))
# fmt: on


async def with_providers(source: Source) -> Source:
    """Ask all nodes that may have instances for their providers."""
    config = source.state.config
    hosts = [node for node in config.sorted_nodes() if node.vm_capable and not node.offline]
    answers = await source.asker.providers(hosts)
    told = {
        node.name: {each.name: each for each in answer}
        for node in hosts
        if not isinstance(answer := answers[node.uuid], GntError)
    }
    return replace(source, providers=known_providers(told, config.sorted_groups(), hosts))


def provider_rows(source: Source) -> list[ProviderRow]:
    return [ProviderRow(known) for known in source.providers]
