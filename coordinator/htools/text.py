"""Ganeti's text format of a cluster: read and written.

Sections are separated by an empty line, fields by ``|``, lists by commas: groups, nodes,
instances, cluster tags, instance policies. Source: htools(1), section "Text backend".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from common.model.template import TRAITS
from common.record import replace
from coordinator.allocator.policy import InstancePolicy
from coordinator.allocator.snapshot import NOWHERE, Group, Instance, Node, Snapshot
from coordinator.htools.text_columns import GROUP, INSTANCE, NODE, POLICY, Column
from coordinator.iallocator.names import groups_named


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
    groups = [Group(**_read("group", GROUP, line)) for line in sections[0]]
    group_index = {group.uuid: index for index, group in enumerate(groups)}
    nodes = [_node(line, group_index) for line in sections[1]]
    node_index = {node.name: index for index, node in enumerate(nodes)}
    instances = [_instance(line, node_index) for line in sections[2]]
    policy = InstancePolicy()
    for line in sections[4] if len(sections) > 4 else ():
        values = _read("policy of", POLICY, line)
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
    name, *texts = _fields("node", NODE, line)
    group = texts[7]
    if group not in groups:
        raise InvalidRequest(f"Unknown group {group!r} for node {name}.")
    if "?" in texts[:6]:  # then nothing else of the line counts
        return Node(name=name, group=groups[group], offline=True, spindles=0)
    values = _read("node", NODE, line)
    flag = values.pop("flag")
    is_master, values["group"] = flag == "M", groups[group]
    return Node(offline=flag == "Y", is_master=is_master, **values)


def _instance(line: str, nodes: Mapping[str, int]) -> Instance:
    values = _read("instance", INSTANCE, line)
    name, primary, secondary = values["name"], values["primary"], values["secondary"]
    for home in (primary, secondary):
        if home not in nodes and not (home == "" and home is secondary):
            raise InvalidRequest(f"Unknown node {home!r} for instance {name}.")
    if secondary == primary and TRAITS[values["template"]].is_mirrored:
        raise InvalidRequest(f"Instance {name} has same primary and secondary node - {primary}.")
    values["primary"] = nodes[primary]
    values["secondary"] = nodes[secondary] if secondary else NOWHERE
    return Instance(disks=(values["disk"],), **values)


def _fields(kind: str, columns: Sequence[Column], line: str) -> list[str]:
    """Split a line; the last of its fields may be missing."""
    fields = line.split("|")
    if len(fields) < sum(column.usual is None for column in columns):
        raise InvalidRequest(f"Invalid/incomplete {kind} data: {line!r}.")
    return [*fields, *(column.usual or "" for column in columns[len(fields) :])]


def _read(kind: str, columns: Sequence[Column], line: str) -> dict[str, Any]:
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
        (_line(GROUP, group) for group in cluster.groups),
        (_node_line(node, cluster) for node in cluster.nodes),
        (_instance_line(instance, cluster) for instance in cluster.instances),
        cluster.tags,
        (_line(POLICY, policy, owner=owner) for owner, policy in owners),
    )
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _node_line(node: Node, cluster: Snapshot) -> str:
    flag = "Y" if not node.is_usable else "M" if node.is_master else "N"
    return _line(NODE, node, flag=flag, group=cluster.groups[node.group].uuid)


def _instance_line(instance: Instance, cluster: Snapshot) -> str:
    primary, secondary, *_ = *(cluster.nodes[home].name for home in instance.homes), "", ""
    return _line(INSTANCE, instance, primary=primary, secondary=secondary)


def _line(columns: Sequence[Column], row: Any, **told: str) -> str:
    """Write the fields of a row, but those that are ``told``."""
    return "|".join(
        told[column.name] if column.name in told else column.show(getattr(row, column.name))
        for column in columns
    )
