"""Operating systems that can be installed, which only nodes know."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from common.errors import GntError
from coordinator.operating_systems.known import KnownOs, known_systems
from coordinator.queries.field import Field, Kind, Table, table
from coordinator.queries.source import Source


class OsRow:
    nodes = ()  # all have been asked

    def __init__(self, known: KnownOs) -> None:
        self.known = known


def _of(attribute: str) -> Callable[[OsRow], Any]:
    def get(row: OsRow) -> Any:
        value = getattr(row.known, attribute)
        return list(value) if isinstance(value, tuple) else value

    return get


# fmt: off
OS_FIELDS: Table[OsRow] = table((
    Field("api_versions", "ApiVersions", Kind.OTHER, "Operating system API versions",
          _of("api_versions")),
    Field("blacklisted", "Blacklisted", Kind.BOOL, "Whether operating system is blacklisted",
          _of("blacklisted")),
    Field("hidden", "Hidden", Kind.BOOL, "Whether operating system is hidden", _of("hidden")),
    Field("name", "Name", Kind.TEXT, "Operating system name", _of("name")),
    Field("node_status", "NodeStatus", Kind.OTHER, "Status from node", _of("node_status")),
    Field("os_hvp", "OsHypervisorParams", Kind.OTHER,
          "Operating system specific hypervisor parameters", _of("os_hvp")),
    Field("osparams", "OsParameters", Kind.OTHER, "Operating system specific parameters",
          _of("osparams")),
    Field("parameters", "Parameters", Kind.OTHER, "Operating system parameters",
          _of("parameters")),
    Field("trusted", "Trusted", Kind.BOOL, "Whether this OS is trusted", _of("trusted")),
    Field("valid", "Valid", Kind.BOOL, "Whether operating system definition is valid",
          _of("valid")),
    Field("variants", "Variants", Kind.OTHER, "Operating system variants", _of("variants")),
))
# fmt: on


async def with_systems(source: Source) -> Source:
    """Ask all nodes that may have instances for their definitions."""
    config = source.state.config
    hosts = [node for node in config.sorted_nodes() if node.vm_capable and not node.offline]
    answers = await source.asker.definitions(hosts)
    told = {
        node.name: {each.name: each for each in answer}
        for node in hosts
        if not isinstance(answer := answers[node.uuid], GntError)
    }
    return replace(source, systems=known_systems(told, config.cluster))


def os_rows(source: Source) -> list[OsRow]:
    return [OsRow(known) for known in source.systems]
