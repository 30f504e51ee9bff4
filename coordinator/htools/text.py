"""Ganeti's text format of a cluster: read and written.

Sections are separated by an empty line, fields by ``|``, lists by commas: groups, nodes,
instances, cluster tags, instance policies. Source: htools(1), section "Text backend".
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from common.model.template import TRAITS
from common.record import Record, replace, values_of
from coordinator.allocator.policy import TEMPLATES, Bounds, InstancePolicy, Spec
from coordinator.allocator.snapshot import NOWHERE, STATUSES, Group, Instance, Node, Snapshot
from coordinator.htools.numbers import amount, real, whole
from coordinator.iallocator.names import groups_named


class _Column(Record):
    """A field of a line.

    Attributes:
        name: of the value in the snapshot.
        what: it is, for complaints.
        read: makes the value; raises ValueError, which says what the text is not.
        show: makes the text.
        usual: the text where a line is too short to have it; None if it has to be there.
    """

    name: str
    what: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    usual: str | None = None


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _flag(text: str) -> bool:
    if text not in {"Y", "N"}:
        raise ValueError("is neither Y nor N")
    return text == "Y"


def _one_of(known: Collection[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError("is unknown")
        return text

    return read


def _yes(value: bool) -> str:
    return "Y" if value else "N"


_SIZES = (
    _Column("total_memory", "total memory", amount, "{:.0f}".format),
    _Column("own_memory", "memory for itself", whole),
    _Column("free_memory", "free memory", whole),
    _Column("total_disk", "total disk", amount, "{:.0f}".format),
    _Column("free_disk", "free disk", whole),
    _Column("total_cpus", "processors", amount, "{:.0f}".format),
)
_MORE_OF_NODES = (
    _Column("spindles", "spindles", whole, str, "1"),
    _Column("tags", "tags", _list, ",".join, ""),
    _Column("exclusive", "exclusive storage", _flag, _yes, "N"),
    _Column("free_spindles", "free spindles", whole, str, "0"),
    _Column("own_cpus", "processors for itself", whole, str, "1"),
    _Column("speed", "processor speed", amount, str, "1.0"),
)
_INSTANCE = (
    _Column("memory", "memory", whole),
    _Column("disk", "disk", whole),
    _Column("vcpus", "processors", whole),
    _Column("status", "status", _one_of(STATUSES)),
    _Column("auto_balance", "auto_balance", _flag, _yes),
    _Column("primary", "primary node", str),
    _Column("secondary", "secondary node", str),
    _Column("template", "disk template", _one_of(TEMPLATES)),
    _Column("tags", "tags", _list, ",".join),
    _Column("spindle_use", "spindle use", whole, str, "1"),
    _Column(
        "disk_spindles",
        "spindles",
        lambda text: None if text == "-" else whole(text),
        lambda spindles: "-" if spindles is None else str(spindles),
        "-",
    ),
    _Column("forthcoming", "forthcoming", _flag, _yes, "N"),
)

_HOMES = slice(5, 7)  # of these, its nodes


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
    policy = InstancePolicy()
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
    found = groups_named(name, groups)
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
    name, *fields = _fields(line, "node", 9)
    sizes, (flag, group), more = fields[:6], fields[6:8], fields[8:]
    if group not in groups:
        raise InvalidRequest(f"Unknown group {group!r} for node {name}.")
    if "?" in sizes:  # then nothing else of the line counts
        return Node(name=name, group=groups[group], offline=True, spindles=0)
    values = _read((*_SIZES, *_MORE_OF_NODES), (*sizes, *more), f"node {name}")
    return Node(
        name=name, group=groups[group], offline=flag == "Y", is_master=flag == "M", **values
    )


def _instance(line: str, nodes: Mapping[str, int]) -> Instance:
    name, *fields = _fields(line, "instance", 10)
    values = _read(_INSTANCE, fields, f"instance {name}")
    primary, secondary = values["primary"], values["secondary"]
    for home in (primary, secondary):
        if home not in nodes and not (home == "" and home is secondary):
            raise InvalidRequest(f"Unknown node {home!r} for instance {name}.")
    if secondary == primary and TRAITS[values["template"]].is_mirrored:
        raise InvalidRequest(f"Instance {name} has same primary and secondary node - {primary}.")
    values["primary"] = nodes[primary]
    values["secondary"] = nodes[secondary] if secondary else NOWHERE
    return Instance(name=name, disks=(values["disk"],), **values)


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
    return owner, InstancePolicy(
        minmax=tuple(map(Bounds, bounds[::2], bounds[1::2])),
        std=_spec(std, what),
        disk_templates=allowed,
        vcpu_ratio=_value(vcpu_ratio, real, f"processor ratio in the {what}"),
        spindle_ratio=_value(spindle_ratio, real, f"spindle ratio in the {what}"),
    )


def _spec(text: str, what: str) -> Spec:
    parts = text.split(",")
    if len(parts) < 6:
        raise InvalidRequest(f"The {what} has {len(parts)} sizes in {text!r} instead of 6.")
    return Spec(*(_value(part, whole, f"sizes in the {what}") for part in parts[:6]))


def _fields(line: str, kind: str, least: int) -> list[str]:
    fields = line.split("|")
    if len(fields) < least:
        raise InvalidRequest(f"Invalid/incomplete {kind} data: {line!r}.")
    return fields


def _read(columns: Sequence[_Column], texts: Sequence[str], whose: str) -> dict[str, Any]:
    """Read fields, of which the last ones may be missing."""
    usual = [column.usual or "" for column in columns[len(texts) :]]
    values = {}
    for column, text in zip(columns, (*texts, *usual), strict=False):
        try:
            values[column.name] = column.read(text)
        except ValueError as error:
            raise _unreadable(f"{column.what} of {whose}", text, error) from error
    return values


def _value(text: str, read: Callable[[str], Any], what: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise _unreadable(what, text, error) from error


def _unreadable(what: str, text: str, why: ValueError) -> InvalidRequest:
    return InvalidRequest(f"Cannot read the {what}: {text!r} {why}.")


def format_cluster(cluster: Snapshot) -> str:
    """Write a cluster; reading it gives the same one."""
    owners = [("", cluster.policy), *((group.name, group.policy) for group in cluster.groups)]
    sections: Sequence[Iterable[str]] = (
        map(_group_line, cluster.groups),
        (_node_line(node, cluster) for node in cluster.nodes),
        (_instance_line(instance, cluster) for instance in cluster.instances),
        cluster.tags,
        (_policy_line(owner, policy) for owner, policy in owners),
    )
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _group_line(group: Group) -> str:
    lists = (",".join(group.tags), ",".join(group.networks))
    return "|".join((group.name, group.uuid, str(group.alloc_policy), *lists))


def _node_line(node: Node, cluster: Snapshot) -> str:
    flag = "Y" if not node.is_usable else "M" if node.is_master else "N"
    group = cluster.groups[node.group].uuid
    sizes, more = _shown(_SIZES, node), _shown(_MORE_OF_NODES, node)
    return "|".join((node.name, *sizes, flag, group, *more))


def _instance_line(instance: Instance, cluster: Snapshot) -> str:
    names = [cluster.nodes[home].name for home in instance.homes]
    texts = _shown(_INSTANCE, instance)
    texts[_HOMES] = *names, *[""] * (2 - len(names))
    return "|".join((instance.name, *texts))


def _shown(columns: Iterable[_Column], row: Node | Instance) -> list[str]:
    return [column.show(getattr(row, column.name)) for column in columns]


def _policy_line(owner: str, policy: InstancePolicy) -> str:
    bounds = ";".join(_spec_text(b) for pair in policy.minmax for b in (pair.min, pair.max))
    templates, ratios = ",".join(policy.disk_templates), (policy.vcpu_ratio, policy.spindle_ratio)
    return "|".join((owner, _spec_text(policy.std), bounds, templates, *map(str, ratios)))


def _spec_text(spec: Spec) -> str:
    return ",".join(map(str, values_of(spec)))
