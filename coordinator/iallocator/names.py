"""Names as operators shorten them: without the domain that all nodes and instances share."""

from __future__ import annotations

from common.errors import InvalidRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.allocator.snapshot import Group, Snapshot


def common_suffix(cluster: Snapshot) -> str:
    """The longest domain that all names of nodes and instances have; "" if there is none."""
    nodes, instances = cluster.columns
    return common_domain([*nodes.names, *instances.names])


def common_domain(names: Iterable[str]) -> str:
    """The longest string beginning with a dot in which all names end; "" if there is none."""
    first, *others = [*names] or [""]
    candidates = [first[at:] for at, letter in enumerate(first) if letter == "."]
    return next((end for end in candidates if all(name.endswith(end) for name in others)), "")


def find_one(name: str, names: Sequence[str], aliases: Sequence[str]) -> int:
    """The position of the only element with this name or alias.

    Raises:
        InvalidRequest: there is none, or more than one.
    """
    found = [index for index, each in enumerate(zip(names, aliases, strict=True)) if name in each]
    if len(found) != 1:
        raise InvalidRequest(f"Wrong number of elems found with name {name}")
    return found[0]


def find_group(name: str, groups: Sequence[Group]) -> int:
    """The position of the only group with this name or UUID.

    Raises:
        InvalidRequest: as ``find_one``.
    """
    return find_one(name, [group.name for group in groups], [group.uuid for group in groups])


def groups_named(ref: str, groups: Sequence[Group]) -> list[int]:
    """The positions of the groups with this name or UUID."""
    return [index for index, group in enumerate(groups) if ref in {group.name, group.uuid}]
