"""Figures and structures as hail prints them."""

from __future__ import annotations

import math
from _json import encode_basestring_ascii as _quoted

from common.record import fields_of, values_of
from coordinator.allocator.policy import TEMPLATES as DISK_TEMPLATES
from coordinator.allocator.refusal import Failure
from coordinator.iallocator.jsontext import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping, Sequence
    from typing import Any

    from coordinator.allocator.policy import InstancePolicy, Spec
    from coordinator.allocator.refusal import Reason
    from coordinator.allocator.snapshot import Group

_CALLED_OTHERWISE = {"sharedfile": "SharedFile", "blockdev": "Block", "drbd": "Drbd8"}
TEMPLATES = {name: f"DT{_CALLED_OTHERWISE.get(name, name.title())}" for name in DISK_TEMPLATES}


_POLICIES = {
    "preferred": "AllocPreferred",
    "last_resort": "AllocLastResort",
    "unallocable": "AllocUnallocable",
}


def not_connected(group: str, instance: str) -> str:
    return f"{group} is not connected to a network required by instance {instance}"


def score(value: float) -> str:
    """With eight decimals."""
    if math.isnan(value):
        return "NaN"
    return f"{value:.8f}" if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def failures(counts: Mapping[Reason, int]) -> str:
    """How many options failed for what: "FailMem: 2, FailDisk: 1"."""
    by_name = dict.fromkeys((*Failure, "FailInternal"), 0)
    for reason, count in counts.items():
        by_name[reason.hail_name or "FailInternal"] += count
    return ", ".join(f"{name}: {count}" for name, count in by_name.items() if count)


def nothing_fits(counts: Mapping[Reason, int]) -> str:
    """What hail says when no option is left."""
    reasons = failures(counts) or "unknown reasons"
    return f"No valid allocation solutions, failure reasons: {reasons}"


def placed(score: str, successes: int, counts: Mapping[Reason, int], nodes: tuple[str, ...]) -> str:
    """What hail says of the option it takes."""
    return (
        f"score: {score}, successes {successes}, failures {sum(counts.values())} "
        f"({failures(counts)}) for node(s) {'/'.join(nodes)}"
    )


def answer(*, success: bool, info: str, result: Any) -> str:
    """The line that goes to standard output."""
    beginning = "Request successful: " if success else "Request failed: "
    return written({"success": success, "info": beginning + info, "result": result})


def groups(some: Sequence[Group], wanted: Container[int]) -> str:
    """Those of the groups with ``wanted`` indices in every detail, in hail's notation."""
    shown = (_group(index, group) for index, group in enumerate(some) if index in wanted)
    return f"[{','.join(shown)}]"


def _group(index: int, group: Group) -> str:
    return (
        f"Group {{name = {_quoted(group.name)}, uuid = {_quoted(group.uuid)}, idx = {index}, "
        f"allocPolicy = {_POLICIES[group.alloc_policy]}, networks = {_strings(group.networks)}, "
        f"iPolicy = {policy(group.policy)}, allTags = {_strings(group.tags)}}}"
    )


def policy(shown: InstancePolicy) -> str:
    """A policy in every detail, in the notation of Ganeti's tools."""
    pairs = ",".join(
        f"MinMaxISpecs {{minMaxISpecsMinSpec = {_spec(bounds.min)}, "
        f"minMaxISpecsMaxSpec = {_spec(bounds.max)}}}"
        for bounds in shown.minmax
    )
    templates = ",".join(TEMPLATES[name] for name in shown.disk_templates)
    return (
        f"IPolicy {{iPolicyMinMaxISpecs = [{pairs}], iPolicyStdSpec = {_spec(shown.std)}, "
        f"iPolicyDiskTemplates = [{templates}], iPolicyVcpuRatio = {shown.vcpu_ratio!r}, "
        f"iPolicySpindleRatio = {shown.spindle_ratio!r}}}"
    )


def _spec(spec: Spec) -> str:
    figures = zip(fields_of(type(spec)), values_of(spec), strict=True)
    shown = (
        f"iSpec{name.title().replace('_', '')} = {f'({value})' if value < 0 else value}"
        for name, value in figures
    )
    return f"ISpec {{{', '.join(shown)}}}"


def _strings(texts: Collection[str]) -> str:
    return f"[{','.join(map(_quoted, texts))}]"
