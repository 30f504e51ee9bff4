"""Which operating systems the cluster has: those whose definition every node has, whole."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.model.cluster import Cluster
from common.model.os_name import OsName
from common.names import NodeName
from common.natural import natural_key
from common.noderpc.operating_systems import DefinitionReport

Told = Mapping[NodeName, Mapping[str, DefinitionReport]]
"""The definitions of each node that answers, by their names."""


@dataclass(frozen=True, slots=True)
class KnownOs:
    """One operating system, and what all nodes have of it in common.

    Attributes:
        name: of its definition.
        valid: each node that answers can use it.
        hidden, blacklisted: as the cluster says.
        variants, parameters, api_versions: that it has on every node.
        trusted: it is on every node.
        node_status: of each node that answers, what it has: in Ganeti's form.
        os_hvp: hypervisor parameters of its instances, by hypervisor.
        osparams: its parameters, but for those that are private.
    """

    name: str
    valid: bool
    hidden: bool
    blacklisted: bool
    variants: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    api_versions: tuple[int, ...]
    trusted: bool
    node_status: Mapping[str, list[list[Any]]]
    os_hvp: Mapping[str, Mapping[str, Any]]
    osparams: Mapping[str, str]

    def names(self) -> Iterator[str]:
        """Yield it with each of its variants, as instances name it."""
        yield from (str(OsName(self.name, variant)) for variant in self.variants or ("",))


def known_systems(told: Told, cluster: Cluster) -> tuple[KnownOs, ...]:
    """Return all that some node has, by name."""
    names = {name for there in told.values() for name in there}
    return tuple(_known(name, told, cluster) for name in sorted(names, key=natural_key))


def _known(name: str, told: Told, cluster: Cluster) -> KnownOs:
    found = {node: there.get(name) for node, there in told.items()}
    usable = [each for each in found.values() if each is not None and not each.problem]
    is_valid = len(usable) == len(found)
    same = usable if is_valid else []
    return KnownOs(
        name=name,
        valid=is_valid,
        hidden=name in cluster.hidden_os,
        blacklisted=name in cluster.blacklisted_os,
        variants=_common(each.variants for each in same),
        parameters=_common(each.parameters for each in same),
        api_versions=_common(each.api_versions for each in same),
        trusted=all(each.is_trusted for each in same),
        node_status={
            str(node): [] if each is None else list(_status(each)) for node, each in found.items()
        },
        os_hvp=cluster.os_hvp.get(name, {}),
        osparams=cluster.osparams.get(name, {}),
    )


def _status(found: DefinitionReport) -> Iterator[list[Any]]:
    parameters = [list(each) for each in found.parameters]
    yield [
        found.path, not found.problem, found.problem, list(found.variants), parameters,
        list(found.api_versions), found.is_trusted,
    ]  # fmt: skip


def _common(found: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return what is in all of them, in the order of the first."""
    first, *others = [*found] or [()]
    return tuple(each for each in first if all(each in other for other in others))
