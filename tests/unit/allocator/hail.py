"""Debian's hail, asked the same question."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.record import fields_of, values_of
from coordinator.allocator.policy import InstancePolicy, Spec
from coordinator.allocator.request import Allocate, Relocate
from coordinator.allocator.snapshot import STATUS_OF, Group, Instance, Node, Snapshot

_STATES = {status: str(state) for state, status in STATUS_OF.items()}

HAIL = shutil.which("hail", path="/usr/lib/ganeti/iallocators:/usr/bin")  # not our own

needs_hail = pytest.mark.skipif(
    HAIL is None, reason="HAIL IS NOT INSTALLED (apt install ganeti-htools): nothing compared"
)

_SCORED = re.compile(
    r"Group (\S+) \((\w+)\): score: (\S+), successes (\d+), failures (\d+) \((.*?)\)"
    r" for node\(s\) (\S+?)(?:,|$)"
)
_FAILED = re.compile(
    r"Group (\S+) \((\w+)\): No valid allocation solutions, failure reasons: ((?:\w+: \d+(?:, )?)+)"
)


@dataclass(frozen=True)
class GroupAnswer:
    score: str
    failures: dict[str, int]
    successes: int


@dataclass(frozen=True)
class Answer:
    success: bool
    info: str
    nodes: tuple[str, ...]

    @property
    def groups(self) -> dict[str, GroupAnswer]:
        """What hail says of each group it could search."""
        answers = {
            name: GroupAnswer(score, _counts(reasons), int(successes))
            for name, _, score, successes, _, reasons, _ in _SCORED.findall(self.info)
        }
        for name, _, reasons in _FAILED.findall(self.info):
            answers[name] = GroupAnswer("", _counts(reasons), 0)
        return answers


def _counts(text: str) -> dict[str, int]:
    pairs = (part.split(": ") for part in text.split(", ") if ": " in part)
    return {reason: int(count) for reason, count in pairs}


def ask(snapshot: Snapshot, request: Allocate | Relocate, path: Path, *options: str) -> Answer:
    """Run hail on the snapshot; ``path`` is where its input goes."""
    assert HAIL is not None
    path.write_text(json.dumps(question(snapshot, request)))
    output = subprocess.check_output(
        [HAIL, *options, str(path)], stderr=subprocess.DEVNULL, timeout=120
    )
    answer = json.loads(output)
    return Answer(answer["success"], answer["info"], tuple(_flat(answer["result"])))


def _flat(result: Any) -> list[str]:
    return [result] if isinstance(result, str) else list(result)


def question(snapshot: Snapshot, request: Allocate | Relocate) -> dict[str, Any]:
    """The iallocator message, version 2."""
    return {
        "version": 2,
        "cluster_name": "cluster",
        "cluster_tags": list(snapshot.tags),
        "enabled_hypervisors": ["xen-pvm"],
        "nodegroups": {f"uuid-{group.name}": _group(group) for group in snapshot.groups},
        "nodes": {node.name: _node(node, snapshot.groups[node.group]) for node in snapshot.nodes},
        "instances": {
            instance.name: _demand(instance)
            | {"nodes": [snapshot.nodes[home].name for home in instance.homes]}
            for instance in snapshot.instances
        },
        "request": _request(snapshot, request),
    }


def _request(snapshot: Snapshot, request: Allocate | Relocate) -> dict[str, Any]:
    if isinstance(request, Relocate):
        return {
            "type": "relocate",
            "name": request.instance,
            "required_nodes": 1,
            "relocate_from": [
                snapshot.nodes[one.homes[-1]].name
                for one in snapshot.instances
                if one.name == request.instance
            ],
        }
    demand = request.instance
    asked = _demand(demand) | {
        "type": "allocate",
        "name": demand.name,
        "required_nodes": 2 if demand.is_mirrored else 1,
        "nics": [{"network": network} for network in sorted(request.networks)],
    }
    if request.group is not None:
        asked["group_name"] = snapshot.groups[request.group].name
    if request.among is not None:
        asked["restrict-to-nodes"] = sorted(request.among)
    return asked


def _demand(demand: Instance) -> dict[str, Any]:
    return {
        "disk_space_total": demand.disk,
        "disks": [{"size": size} for size in demand.disks],
        "memory": demand.memory,
        "vcpus": demand.vcpus,
        "tags": sorted(demand.tags),
        "disk_template": str(demand.template),
        "spindle_use": demand.spindle_use,
        "nics": [],
        "admin_state": _STATES[demand.status],
        "forthcoming": demand.forthcoming,
    }


def _node(node: Node, group: Group) -> dict[str, Any]:
    return {
        "offline": node.offline,
        "drained": node.drained,
        "vm_capable": node.vm_capable,
        "group": f"uuid-{group.name}",
        "ndparams": {"exclusive_storage": False, "spindle_count": node.spindles},
        "tags": sorted(node.tags),
        "free_spindles": 0,
        "total_memory": node.total_memory,
        "reserved_memory": node.own_memory,
        "free_memory": node.free_memory,
        "total_disk": node.total_disk,
        "free_disk": node.free_disk,
        "total_cpus": node.total_cpus,
        "reserved_cpus": node.own_cpus,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "alloc_policy": str(group.alloc_policy),
        "networks": sorted(group.networks),
        "ipolicy": wire_policy(group.policy),
        "tags": [],
    }


def wire_policy(policy: InstancePolicy) -> dict[str, Any]:
    """As Ganeti writes it."""
    return {
        "minmax": [{"min": _spec(pair.min), "max": _spec(pair.max)} for pair in policy.minmax],
        "std": _spec(policy.std),
        "disk-templates": list(policy.disk_templates),
        "vcpu-ratio": policy.vcpu_ratio,
        "spindle-ratio": policy.spindle_ratio,
    }


def _spec(spec: Spec) -> dict[str, int]:
    values = zip(fields_of(Spec), values_of(spec), strict=True)
    return {name.replace("_", "-"): value for name, value in values}


def show(score: float) -> str:
    """As hail prints it."""
    return f"{score:.8f}".replace("nan", "NaN").replace("inf", "Infinity")
