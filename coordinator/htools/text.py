"""Ganeti's text format of a cluster: read and written.

Sections are separated by an empty line, fields by ``|``, lists by commas: groups, nodes,
instances, cluster tags, instance policies. Source: htools(1), section "Text backend".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from common.model.template import TRAITS
from common.names import MiB
from common.record import replace
from coordinator.allocator.policy import TEMPLATES, Bounds, InstancePolicy, Spec
from coordinator.allocator.snapshot import (
    DEFAULT_POLICY,
    NOWHERE,
    STATUSES,
    Group,
    Instance,
    Node,
    Snapshot,
)
from coordinator.htools.numbers import amount, real, whole

_T = TypeVar("_T")


def parse_cluster(text: str) -> Snapshot:
    """Read a cluster.

    Raises:
        InvalidRequest: the text is not in the format; names the line's object.
    """
    sections = _sections(text)
    if len(sections) < 4:
        raise InvalidRequest(
            f"Invalid format of the input file: {len(sections)} sections instead of 4 or more."
        )
    groups = [_group(line) for line in sections[0]]
    group_index = {group.uuid: index for index, group in enumerate(groups)}
    nodes = [_node(line, group_index) for line in sections[1]]
    node_index = {node.name: index for index, node in enumerate(nodes)}
    instances = [_instance(line, node_index) for line in sections[2]]
    policy = DEFAULT_POLICY
    for line in sections[4] if len(sections) > 4 else ():
        owner, found = _policy(line)
        if owner:
            index = _owner(owner, groups)
            groups[index] = replace(groups[index], policy=found)
        else:
            policy = found
    return Snapshot(
        groups=tuple(groups),
        nodes=tuple(nodes),
        instances=tuple(instances),
        tags=tuple(sections[3]),
        policy=policy,
    )


def _owner(name: str, groups: Sequence[Group]) -> int:
    found = [index for index, group in enumerate(groups) if name in {group.name, group.uuid}]
    if len(found) != 1:
        raise InvalidRequest(f"The policy of group {name} is that of {len(found)} groups.")
    return found[0]


def _sections(text: str) -> list[list[str]]:
    """Split at empty lines; each of them ends a section."""
    sections: list[list[str]] = [[]]
    for line in text.removesuffix("\n").split("\n"):
        if line:
            sections[-1].append(line)
        else:
            sections.append([])
    return sections


def _group(line: str) -> Group:
    name, uuid, policy, tags, *rest = _fields(line, "group", 4)
    try:
        alloc_policy = AllocationPolicy(policy)
    except ValueError as error:
        raise InvalidRequest(f"Group {name} has no allocation policy {policy!r}.") from error
    networks = _list(rest[0]) if rest else ()
    return Group(
        name=name, uuid=uuid, alloc_policy=alloc_policy, tags=_list(tags), networks=networks
    )


def _node(line: str, groups: Mapping[str, int]) -> Node:
    fields = _fields(line, "node", 9)
    name, *numbers = fields[:7]
    flag, group = fields[7:9]
    rest = dict(enumerate(fields[9:]))
    if group not in groups:
        raise InvalidRequest(f"Unknown group {group!r} for node {name}.")

    def number(text: str, kind: Callable[[str], _T], what: str) -> _T:
        return _number(text, kind, f"{what} of node {name}")

    if "?" in numbers:  # then nothing else of the line counts
        return Node(name=name, group=groups[group], offline=True, spindles=0)
    exclusive = rest.get(2, "N")
    if exclusive not in {"Y", "N"}:
        raise InvalidRequest(f"Node {name} has exclusive storage {exclusive!r}, not Y or N.")
    tmem, nmem, fmem, tdsk, fdsk, tcpu = numbers
    return Node(
        name=name,
        group=groups[group],
        total_memory=number(tmem, amount, "total memory"),
        own_memory=number(nmem, whole, "memory for itself"),
        free_memory=number(fmem, whole, "free memory"),
        total_disk=number(tdsk, amount, "total disk"),
        free_disk=number(fdsk, whole, "free disk"),
        total_cpus=number(tcpu, amount, "processors"),
        own_cpus=number(rest.get(4, "1"), whole, "processors for itself"),
        speed=number(rest.get(5, "1.0"), amount, "processor speed"),
        offline=flag == "Y",
        is_master=flag == "M",
        spindles=number(rest.get(0, "1"), whole, "spindles"),
        free_spindles=number(rest.get(3, "0"), whole, "free spindles"),
        exclusive=exclusive == "Y",
        tags=_list(rest.get(1, "")),
    )


def _instance(line: str, nodes: Mapping[str, int]) -> Instance:
    fields = _fields(line, "instance", 10)
    name, memory, disk, vcpus, status, auto, primary, secondary, template, tags = fields[:10]
    rest = dict(enumerate(fields[10:]))
    for home in (primary, secondary):
        if home not in nodes and not (home == "" and home is secondary):
            raise InvalidRequest(f"Unknown node {home!r} for instance {name}.")
    if status not in STATUSES:
        raise InvalidRequest(f"Instance {name} has an unknown status {status!r}.")
    if template not in TEMPLATES:
        raise InvalidRequest(f"Instance {name} has an unknown disk template {template!r}.")
    if secondary == primary and TRAITS[template].is_mirrored:
        raise InvalidRequest(f"Instance {name} has same primary and secondary node - {primary}.")
    if auto not in {"Y", "N"}:
        raise InvalidRequest(f"Instance {name} has auto_balance {auto!r}, not Y or N.")
    forthcoming = rest.get(2, "N")
    if forthcoming not in {"Y", "N"}:
        raise InvalidRequest(f"Instance {name} has forthcoming {forthcoming!r}, not Y or N.")
    size = _number(disk, whole, f"disk of instance {name}")
    spindles = rest.get(1, "-")
    return Instance(
        name=name,
        memory=_number(memory, whole, f"memory of instance {name}"),
        disk=size,
        vcpus=_number(vcpus, whole, f"processors of instance {name}"),
        status=status,
        primary=nodes[primary],
        secondary=nodes[secondary] if secondary else NOWHERE,
        template=template,
        auto_balance=auto == "Y",
        tags=_list(tags),
        spindle_use=_number(rest.get(0, "1"), whole, f"spindle use of instance {name}"),
        disk_spindles=None
        if spindles == "-"
        else _number(spindles, whole, f"spindles of instance {name}"),
        forthcoming=forthcoming == "Y",
        disks=(size,),
    )


def _policy(line: str) -> tuple[str, InstancePolicy]:
    owner, std, minmax, templates, vcpu_ratio, spindle_ratio = _fields(line, "policy", 6)[:6]
    what = f"policy of {owner or 'the cluster'}"
    bounds = [_spec(part, what) for part in (minmax.split(";") if minmax else ())]
    if len(bounds) % 2:
        raise InvalidRequest(f"The {what} has a minimum without a maximum.")
    allowed = _list(templates)
    unknown = [template for template in allowed if template not in TEMPLATES]
    if unknown:
        raise InvalidRequest(f"The {what} has an unknown disk template {unknown[0]!r}.")
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return owner, InstancePolicy(
        minmax=tuple(Bounds(min=low, max=high) for low, high in pairs),
        std=_spec(std, what),
        disk_templates=allowed,
        vcpu_ratio=_number(vcpu_ratio, real, f"processor ratio in the {what}"),
        spindle_ratio=_number(spindle_ratio, real, f"spindle ratio in the {what}"),
    )


def _spec(text: str, what: str) -> Spec:
    parts = text.split(",")
    if len(parts) < 6:
        raise InvalidRequest(f"The {what} has {len(parts)} sizes in {text!r} instead of 6.")
    numbers = [_number(part, whole, f"sizes in the {what}") for part in parts[:6]]
    memory, cpus, disk, disks, nics, spindles = numbers
    return Spec(
        memory_size=MiB(memory), cpu_count=cpus, disk_size=MiB(disk), disk_count=disks,
        nic_count=nics, spindle_use=spindles,
    )  # fmt: skip


def _fields(line: str, kind: str, least: int) -> list[str]:
    fields = line.split("|")
    if len(fields) < least:
        raise InvalidRequest(f"Invalid/incomplete {kind} data: {line!r}.")
    return fields


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _number(text: str, kind: Callable[[str], _T], what: str) -> _T:
    try:
        return kind(text)
    except ValueError as error:
        raise InvalidRequest(f"Cannot read the {what}: {text!r} {error}.") from error


def format_cluster(cluster: Snapshot) -> str:
    """Write a cluster; reading it gives the same one."""
    sections: Sequence[Sequence[str]] = (
        [_group_line(group) for group in cluster.groups],
        [_node_line(node, cluster) for node in cluster.nodes],
        [_instance_line(instance, cluster) for instance in cluster.instances],
        cluster.tags,
        [
            _policy_line("", cluster.policy),
            *(_policy_line(group.name, group.policy) for group in cluster.groups),
        ],
    )
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _group_line(group: Group) -> str:
    lists = (",".join(group.tags), ",".join(group.networks))
    return "|".join((group.name, group.uuid, str(group.alloc_policy), *lists))


def _node_line(node: Node, cluster: Snapshot) -> str:
    flag = "Y" if not node.is_usable else "M" if node.is_master else "N"
    numbers = (
        f"{node.total_memory:.0f}", node.own_memory, node.free_memory, f"{node.total_disk:.0f}",
        node.free_disk, f"{node.total_cpus:.0f}",
    )  # fmt: skip
    extra = (
        node.spindles, ",".join(node.tags), "Y" if node.exclusive else "N", node.free_spindles,
        node.own_cpus, node.speed,
    )  # fmt: skip
    group = cluster.groups[node.group].uuid
    return "|".join(map(str, (node.name, *numbers, flag, group, *extra)))


def _instance_line(instance: Instance, cluster: Snapshot) -> str:
    nodes = cluster.nodes
    secondary = nodes[instance.secondary].name if instance.secondary != NOWHERE else ""
    return "|".join(
        map(
            str,
            (
                instance.name, instance.memory, instance.disk, instance.vcpus, instance.status,
                "Y" if instance.auto_balance else "N", nodes[instance.primary].name, secondary,
                instance.template, ",".join(instance.tags), instance.spindle_use,
                "-" if instance.disk_spindles is None else instance.disk_spindles,
                "Y" if instance.forthcoming else "N",
            ),
        )
    )  # fmt: skip


def _policy_line(owner: str, policy: InstancePolicy) -> str:
    bounds = ";".join(_spec_text(b) for pair in policy.minmax for b in (pair.min, pair.max))
    return "|".join(
        (
            owner, _spec_text(policy.std), bounds, ",".join(policy.disk_templates),
            str(policy.vcpu_ratio), str(policy.spindle_ratio),
        )
    )  # fmt: skip


def _spec_text(spec: Spec) -> str:
    return ",".join(
        map(
            str,
            (
                spec.memory_size, spec.cpu_count, spec.disk_size, spec.disk_count,
                spec.nic_count, spec.spindle_use,
            ),
        )
    )  # fmt: skip
