"""Loads that monitoring agents measured, and what they make of the use of each instance."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest, NotFound
from common.record import replace
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Instance, Snapshot
from coordinator.htools.agents import ask_agents
from coordinator.htools.output import tell

CPU, XEN_CPU = "cpu-avg-load", "xen-cpu-avg-load"
"""Collectors: of a node's processors; of what each instance uses of them, which Xen tells."""

_Reports = Mapping[str, Sequence[Any]]


def with_measured_loads(
    cluster: Snapshot, text: str | None, *, is_xen: bool, has_to_be_complete: bool
) -> Snapshot:
    """The cluster with instances' use of processors as agents tell it.

    Nothing is changed, and it says so on stderr, unless the agents of all nodes tell.

    Args:
        cluster: whose nodes to ask.
        text: what they would answer, as ``--mond-data`` reads it; None to ask them.
        is_xen: whether to use what Xen tells of instances, not the load of whole nodes.
        has_to_be_complete: whether it is an error if an agent does not tell.

    Raises:
        InvalidRequest: ``text`` is not what agents answer.
        NotFound: something is not told.
    """
    collector = XEN_CPU if is_xen else CPU
    if text is None:
        text, silent = ask_agents([node.name for node in cluster.nodes], collector)
        for node in silent:
            tell(f"Failed to contact node's {node} MonD for DC {collector}")
    reports = _parse(text)
    loaded = _with_xen_loads(cluster, reports) if is_xen else _with_node_loads(cluster, reports)
    if loaded is None and has_to_be_complete:
        raise NotFound("Not all required data available")
    return loaded or cluster


def _parse(text: str) -> _Reports:
    try:
        return {one["node"]: list(one["reports"]) for one in _listed(json.loads(text))}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidRequest("The monitoring data is not a list of nodes with reports.") from error


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is no list")
    return value


def _find(reports: Sequence[Any], collector: str) -> Any:
    for report in reports:
        if isinstance(report, dict) and report.get("name") == collector:
            return report.get("data")
    return None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def _with_node_loads(cluster: Snapshot, reports: _Reports) -> Snapshot | None:
    """Each node's load, and its primaries' shares of it by their processors.

    The shares need not make up all of it: a node has processors of its own to work for.
    """
    measured: dict[str, float] = {}
    for node in cluster.nodes:
        data = _find(reports.get(node.name, ()), CPU)
        total = _number(data.get("cpu_total")) if isinstance(data, dict) else None
        if total is None:
            _say_ignored(CPU)
            return None
        measured[node.name] = total
    cpus = ClusterModel(cluster).resources.cpus

    def loaded(instance: Instance) -> Instance:
        share = instance.used_vcpus / float(cpus[instance.primary] or 1)
        load = measured[cluster.nodes[instance.primary].name] * share
        return replace(instance, load=(load, *instance.load[1:]))

    instances = tuple(i if i.forthcoming else loaded(i) for i in cluster.instances)
    loads = tuple(measured[node.name] for node in cluster.nodes)
    return replace(cluster, instances=instances, cpu_loads=loads)


def _with_xen_loads(cluster: Snapshot, reports: _Reports) -> Snapshot | None:
    """Each instance with its own load; None if one is not told of."""
    loads: dict[str, float] = {}
    for node in cluster.nodes:
        data = _find(reports.get(node.name, ()), XEN_CPU)
        if not isinstance(data, dict):
            _say_ignored(XEN_CPU)
            return None
        found = {name: _number(value) for name, value in data.items()}
        loads |= {name: value for name, value in found.items() if value is not None}
    missing = [one.name for one in cluster.instances if one.name not in loads]
    if missing:
        names = json.dumps(missing, separators=(",", ":"))
        tell(f"No CPU information available for {names}")
        return None
    instances = (replace(i, load=(loads[i.name], *i.load[1:])) for i in cluster.instances)
    return replace(cluster, instances=tuple(instances))


def _say_ignored(collector: str) -> None:
    tell(f"Didn't receive an answer by all MonDs, {collector}'s data will be ignored.")
