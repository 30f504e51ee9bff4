"""Ganeti's text format of a cluster: read and written.

Sections are separated by an empty line, fields by ``|``, lists by commas: groups, nodes,
instances, cluster tags, instance policies. Source: htools(1), section "Text backend".
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from common.model.template import TRAITS
from common.record import Record, replace, values_of
from coordinator.allocator.policy import TEMPLATES, Bounds, InstancePolicy, Spec
from coordinator.allocator.snapshot import NOWHERE, STATUSES, Group, Instance, Node, Snapshot
from coordinator.htools.numbers import amount, real, whole
from coordinator.iallocator.names import groups_named

T = TypeVar("T")


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


def _list_of(read: Callable[[str], T], separator: str = ",") -> Callable[[str], tuple[T, ...]]:
    def read_list(text: str) -> tuple[T, ...]:
        found = []
        for part in text.split(separator) if text else ():
            try:
                found.append(read(part))
            except ValueError as error:
                raise ValueError(f"has {part!r}, which {error}") from error
        return tuple(found)

    return read_list


def _flag(text: str) -> bool:
    if text not in {"Y", "N"}:
        raise ValueError("is neither Y nor N")
    return text == "Y"


def _one_of(known: Collection[T]) -> Callable[[str], T]:
    by_name = {str(each): each for each in known}

    def read(text: str) -> T:
        if text not in by_name:
            raise ValueError("is unknown")
        return by_name[text]

    return read


def _spec(text: str) -> Spec:
    sizes = _list_of(whole)(text)
    if len(sizes) < 6:
        raise ValueError(f"has {len(sizes)} sizes instead of 6")
    return Spec(*sizes[:6])


def _bounds(text: str) -> tuple[Bounds, ...]:
    specs = _list_of(_spec, ";")(text)
    if len(specs) % 2:
        raise ValueError("has a minimum without a maximum")
    return tuple(map(Bounds, specs[::2], specs[1::2]))


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def _sizes(spec: Spec) -> str:
    return ",".join(map(str, values_of(spec)))


def _pairs(minmax: Sequence[Bounds]) -> str:
    return ";".join(_sizes(spec) for bounds in minmax for spec in (bounds.min, bounds.max))


_list, _joined, _rounded = _list_of(str), ",".join, "{:.0f}".format
_GROUP = (
    _Column("name", "name", str),
    _Column("uuid", "UUID", str),
    _Column("alloc_policy", "allocation policy", _one_of([*AllocationPolicy])),
    _Column("tags", "tags", _list, _joined),
    _Column("networks", "networks", _list, _joined, ""),
)
_NODE = (
    _Column("name", "name", str),
    _Column("total_memory", "total memory", amount, _rounded),
    _Column("own_memory", "memory for itself", whole),
    _Column("free_memory", "free memory", whole),
    _Column("total_disk", "total disk", amount, _rounded),
    _Column("free_disk", "free disk", whole),
    _Column("total_cpus", "processors", amount, _rounded),
    _Column("flag", "state", str),
    _Column("group", "group", str),
    _Column("spindles", "spindles", whole, str, "1"),
    _Column("tags", "tags", _list, _joined, ""),
    _Column("exclusive", "exclusive storage", _flag, _yes, "N"),
    _Column("free_spindles", "free spindles", whole, str, "0"),
    _Column("own_cpus", "processors for itself", whole, str, "1"),
    _Column("speed", "processor speed", amount, str, "1.0"),
)
_INSTANCE = (
    _Column("name", "name", str),
    _Column("memory", "memory", whole),
    _Column("disk", "disk", whole),
    _Column("vcpus", "processors", whole),
    _Column("status", "status", _one_of(STATUSES)),
    _Column("auto_balance", "auto_balance", _flag, _yes),
    _Column("primary", "primary node", str),
    _Column("secondary", "secondary node", str),
    _Column("template", "disk template", _one_of(TEMPLATES)),
    _Column("tags", "tags", _list, _joined),
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
_POLICY = (
    _Column("owner", "group", str),
    _Column("std", "standard size", _spec, _sizes),
    _Column("minmax", "bounds", _bounds, _pairs),
    _Column("disk_templates", "disk templates", _list_of(_one_of(TEMPLATES)), _joined),
    _Column("vcpu_ratio", "processor ratio", real),
    _Column("spindle_ratio", "spindle ratio", real),
)


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
    groups = [Group(**_read("group", _GROUP, line)) for line in sections[0]]
    group_index = {group.uuid: index for index, group in enumerate(groups)}
    nodes = [_node(line, group_index) for line in sections[1]]
    node_index = {node.name: index for index, node in enumerate(nodes)}
    instances = [_instance(line, node_index) for line in sections[2]]
    policy = InstancePolicy()
    for line in sections[4] if len(sections) > 4 else ():
        values = _read("policy of", _POLICY, line)
        owner, found = values.pop("owner"), InstancePolicy(**values)
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


def _node(line: str, groups: Mapping[str, int]) -> Node:
    name, *texts = _fields("node", _NODE, line)
    group = texts[7]
    if group not in groups:
        raise InvalidRequest(f"Unknown group {group!r} for node {name}.")
    if "?" in texts[:6]:  # then nothing else of the line counts
        return Node(name=name, group=groups[group], offline=True, spindles=0)
    values = _read("node", _NODE, line)
    flag = values.pop("flag")
    is_master, values["group"] = flag == "M", groups[group]
    return Node(offline=flag == "Y", is_master=is_master, **values)


def _instance(line: str, nodes: Mapping[str, int]) -> Instance:
    values = _read("instance", _INSTANCE, line)
    name, primary, secondary = values["name"], values["primary"], values["secondary"]
    for home in (primary, secondary):
        if home not in nodes and not (home == "" and home is secondary):
            raise InvalidRequest(f"Unknown node {home!r} for instance {name}.")
    if secondary == primary and TRAITS[values["template"]].is_mirrored:
        raise InvalidRequest(f"Instance {name} has same primary and secondary node - {primary}.")
    values["primary"] = nodes[primary]
    values["secondary"] = nodes[secondary] if secondary else NOWHERE
    return Instance(disks=(values["disk"],), **values)


def _fields(kind: str, columns: Sequence[_Column], line: str) -> list[str]:
    """Split a line; the last of its fields may be missing."""
    fields = line.split("|")
    if len(fields) < sum(column.usual is None for column in columns):
        raise InvalidRequest(f"Invalid/incomplete {kind} data: {line!r}.")
    return [*fields, *(column.usual or "" for column in columns[len(fields) :])]


def _read(kind: str, columns: Sequence[_Column], line: str) -> dict[str, Any]:
    """Read a line, whose first field is a name."""
    fields, values = _fields(kind, columns, line), {}
    for column, text in zip(columns, fields, strict=False):
        try:
            values[column.name] = column.read(text)
        except ValueError as error:
            owner = f"{kind} {fields[0] or 'the cluster'}"
            raise InvalidRequest(
                f"Cannot read the {column.what} of {owner}: {text!r} {error}."
            ) from error
    return values


def format_cluster(cluster: Snapshot) -> str:
    """Write a cluster; reading it gives the same one."""
    owners = [("", cluster.policy), *((group.name, group.policy) for group in cluster.groups)]
    sections: Sequence[Iterable[str]] = (
        (_line(_GROUP, group) for group in cluster.groups),
        (_node_line(node, cluster) for node in cluster.nodes),
        (_instance_line(instance, cluster) for instance in cluster.instances),
        cluster.tags,
        (_line(_POLICY, policy, owner=owner) for owner, policy in owners),
    )
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _node_line(node: Node, cluster: Snapshot) -> str:
    flag = "Y" if not node.is_usable else "M" if node.is_master else "N"
    return _line(_NODE, node, flag=flag, group=cluster.groups[node.group].uuid)


def _instance_line(instance: Instance, cluster: Snapshot) -> str:
    primary, secondary, *_ = *(cluster.nodes[home].name for home in instance.homes), "", ""
    return _line(_INSTANCE, instance, primary=primary, secondary=secondary)


def _line(columns: Sequence[_Column], row: Any, **told: str) -> str:
    """Write the fields of a row, but those that are ``told``."""
    return "|".join(
        told[column.name] if column.name in told else column.show(getattr(row, column.name))
        for column in columns
    )
