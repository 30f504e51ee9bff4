"""Small requests answered without NumPy: a pair of nodes in a small and simple cluster.

What is not small, not simple or not in order is not answered here at all; see ``few_pairs`` for
what counts as simple. The words are those of ``choosing``.
"""

from __future__ import annotations

from types import SimpleNamespace

from common.errors import InvalidRequest
from coordinator.allocator.allocation.few_nodes import FewNodes, Wanted
from coordinator.allocator.allocation.few_pairs import FewPairs
from coordinator.allocator.policy import check_policy
from coordinator.iallocator import show
from coordinator.iallocator.fields import Fields
from coordinator.iallocator.missing import missing
from coordinator.iallocator.tables import read_instances, read_new_instance, read_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from coordinator.allocator.allocation.few_pairs import Found
    from coordinator.allocator.columns import InstanceColumns, NodeColumns

_MOST_PAIRS = 45_000  # more are faster with NumPy, whose import is then worth its time
_POLICIES = ("preferred", "last_resort", "unallocable")
_HYPERVISORS = {"kvm", "xen-pvm", "chroot", "xen-hvm", "lxc", "fake"}
_SPEC = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")


class Unusual(Exception):
    """Not to be answered here."""


class QuickOptions:
    """What the command line says; see ``answers.Options``."""

    __slots__ = ("among", "check_capacity", "ignore_soft_errors", "kvm_node_memory")

    def __init__(
        self,
        *,
        kvm_node_memory: int,
        check_capacity: bool = True,
        ignore_soft_errors: bool = False,
        among: frozenset[str] | None = None,
    ) -> None:
        self.kvm_node_memory, self.among = kvm_node_memory, among
        self.check_capacity, self.ignore_soft_errors = check_capacity, ignore_soft_errors


def quick_answer(message: Any, options: QuickOptions) -> tuple[str, list[str]] | None:
    """The line for standard output and those for standard error; None if it is no small matter."""
    try:
        return _answer(message, options)
    except (Unusual, InvalidRequest, KeyError, IndexError, TypeError, AttributeError):
        return None


class _Group:
    """A group of the message; a policy has the attributes of ``common.model.policy``."""

    def __init__(self, uuid: str, value: dict[str, Any]) -> None:
        self.uuid = uuid
        self.name, self.alloc_policy = _text(value["name"]), _text(value["alloc_policy"])
        self.networks, policy = _texts(value["networks"]), value["ipolicy"]
        if type(policy) is not dict:
            raise Unusual
        _texts(value["tags"])
        if self.alloc_policy not in _POLICIES:
            raise Unusual
        self.policy: Any = SimpleNamespace(
            minmax=[
                SimpleNamespace(min=_spec(pair["min"]), max=_spec(pair["max"]))
                for pair in policy["minmax"]
            ],
            disk_templates=_texts(policy["disk-templates"]),
        )
        _spec(policy["std"])
        self.cpu_ratio, self.spindle_ratio = (
            _number(policy[key]) for key in ("vcpu-ratio", "spindle-ratio")
        )
        # Templates that are unknown are complained of elsewhere.
        if not {*self.policy.disk_templates} <= show.TEMPLATES.keys():
            raise Unusual

    @property
    def title(self) -> str:
        return f"Group {self.name} ({self.alloc_policy})"


def _answer(message: Any, options: QuickOptions) -> tuple[str, list[str]] | None:
    asked = message["request"]
    if (
        type(message) is not dict
        or type(asked) is not dict
        or (asked["type"], asked["required_nodes"], asked["disk_template"])
        != ("allocate", 2, "drbd")
        or type(asked["required_nodes"]) is not int
        or len(message["nodes"]) ** 2 > _MOST_PAIRS * len(message["nodegroups"])
    ):
        return None
    groups = [_Group(uuid, value) for uuid, value in _items(message["nodegroups"])]
    hypervisors = _texts(message["enabled_hypervisors"])
    is_kvm = hypervisors[:1] == ["kvm"] and options.kvm_node_memory > 0
    index = {group.uuid: index for index, group in enumerate(groups)}
    nodes = read_nodes(_object(message["nodes"]), index)
    if is_kvm:
        states = zip(nodes.offline, nodes.vm_capable, strict=True)
        own = options.kvm_node_memory
        nodes.own_memory = [0 if gone or not able else own for gone, able in states]
    index = {name: at for at, name in enumerate(nodes.names)}
    instances = read_instances(_object(message["instances"]), index)
    if (
        not _HYPERVISORS.issuperset(hypervisors)
        or any(tag.startswith("htools:") for tag in _texts(message["cluster_tags"]))
        or not _is_simple(nodes, instances)
    ):
        return None
    new = read_new_instance(_text(asked["name"]), Fields(asked, ""))
    if new.forthcoming[0]:
        return None
    search = _Search(groups, nodes, instances, new, options, asked)
    if not search.is_usual:
        return None
    success, info, result = search.answer()
    line = show.answer(success=success, info=info, result=result)
    return line, list(missing(nodes, instances))


def _is_simple(nodes: NodeColumns, instances: InstanceColumns) -> bool:
    homes = zip(instances.primary, instances.secondary, strict=True)
    totals = zip(
        nodes.usable,
        nodes.total_memory,
        nodes.total_disk,
        nodes.total_cpus,
        nodes.spindles,
        strict=True,
    )
    return (
        {*instances.template} <= {"drbd"}
        and not any(instances.forthcoming)
        and not any(nodes.exclusive)
        and all(secondary not in (primary, -1) for primary, secondary in homes)
        and all(not usable or min(total) > 0 for usable, *total in totals)
    )


class _Search:
    """One new instance, tried in every group that may take it."""

    def __init__(
        self,
        groups: list[_Group],
        nodes: NodeColumns,
        instances: InstanceColumns,
        new: InstanceColumns,
        options: QuickOptions,
        asked: dict[str, Any],
    ) -> None:
        self._groups, self._nodes, self._new, self._options = groups, nodes, new, options
        self._resources = FewNodes(
            nodes, instances, [g.cpu_ratio for g in groups], [g.spindle_ratio for g in groups]
        )
        self._group_name = asked.get("group_name")
        among = asked.get("restrict-to-nodes")
        wanted = None if among is None else frozenset(_texts(among))
        self._among = wanted if options.among is None else options.among

    @property
    def is_usual(self) -> bool:
        """Whether hail takes the usual way: some node is in a group that is meant, by its name."""
        wanted = self._group_name
        if wanted is None:
            meant = {at for at, g in enumerate(self._groups) if g.alloc_policy != "unallocable"}
        else:
            meant = {at for at, g in enumerate(self._groups) if wanted in (g.name, g.uuid)}
            if len(meant) != 1 or self._groups[min(meant)].name != _text(wanted):
                return False
        limits = [g.spindle_ratio > 0 for g in self._groups]
        return all(limits) and not meant.isdisjoint(self._nodes.group)

    def answer(self) -> tuple[bool, str, list[str]]:
        """Success, explanation and the names of the nodes."""
        if self._group_name is not None:
            return self._in_one()
        tried = [(at, *self._try(at, None)) for at in sorted({*self._nodes.group})]
        named = [(self._groups[at], problem, found) for at, problem, found in tried]
        messages = [
            self._not_connected(f"group {group.name}")
            for group, problem, _ in named
            if problem == show.NOT_CONNECTED
        ]
        for group, problem, found in named:
            if found is not None:
                messages.append(f"{group.title}: {self._described(found)}")
            elif problem != show.NOT_CONNECTED:
                messages.append(f"Group {group.name}: error {problem}")
        usable = [
            ((group.alloc_policy == "last_resort", found.score, -at), group, found)
            for at, (group, _, found) in enumerate(named)
            if found is not None and found.pair and group.alloc_policy != "unallocable"
        ]
        if not usable:
            return False, ", ".join(messages), []
        _, group, best = min(usable, key=lambda one: one[0])
        info = ", ".join([f"Selected group: {group.name}", *messages])
        return True, info, self._names(best)

    def _in_one(self) -> tuple[bool, str, list[str]]:
        """In the group that was asked for, whose nodes alone are scored then."""
        at = next(at for at, g in enumerate(self._groups) if g.name == self._group_name)
        group = self._groups[at]
        scored = [node for node, other in enumerate(self._nodes.group) if other == at]
        problem, found = self._try(at, scored)
        if found is None:
            if problem == show.NOT_CONNECTED:
                problem = self._not_connected(f"The group {group.name}")
            return False, problem, []
        return bool(found.pair), f"{group.title}: {self._described(found)}", self._names(found)

    def _try(self, at: int, scored: Sequence[int] | None) -> tuple[str, Found | None]:
        """Why a group cannot be tried, or what came of it."""
        group, nodes, new, options = self._groups[at], self._nodes, self._new, self._options
        if not new.networks[0] <= {*group.networks}:
            return show.NOT_CONNECTED, None
        candidates = [
            node
            for node, (name, other, usable) in enumerate(
                zip(nodes.names, nodes.group, nodes.usable, strict=True)
            )
            if other == at and usable and (self._among is None or name in self._among)
        ]
        if len(candidates) < 2:
            return "Not enough online nodes", None
        demand: Any = SimpleNamespace(
            memory=new.memory[0],
            vcpus=new.vcpus[0],
            spindle_use=new.spindle_use[0],
            disks=new.disks[0],
            disk_spindles=new.disk_spindles[0],
            template="drbd",
        )
        pairs = FewPairs(
            self._resources,
            range(len(nodes.names)) if scored is None else scored,
            candidates,
            Wanted(new.memory[0], new.vcpus[0], new.disk[0], new.spindle_use[0], new.status[0]),
            check_policy(group.policy, demand),
            force=options.ignore_soft_errors,
        )
        return "", pairs.find(redundant=options.check_capacity)

    def _not_connected(self, group: str) -> str:
        return show.not_connected(group, self._new.names[0])

    def _described(self, found: Found) -> str:
        if found.pair is None:
            return show.nothing_fits(found.failures)
        names = tuple(self._names(found))
        return show.placed(show.score(found.score), found.successes, found.failures, names)

    def _names(self, found: Found) -> list[str]:
        return [self._nodes.names[node] for node in found.pair or ()]


def _items(value: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    if type(value) is not dict or any(type(each) is not dict for each in value.values()):
        raise Unusual
    return value.items()


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise Unusual
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Unusual
    return value


def _texts(value: Any) -> list[str]:
    if type(value) is not list or any(type(each) is not str for each in value):
        raise Unusual
    return value


def _number(value: Any) -> float:
    if type(value) is not int and not isinstance(value, float):
        raise Unusual
    return float(value)


def _spec(value: dict[str, Any]) -> SimpleNamespace:
    numbers = {key.replace("-", "_"): value[key] for key in _SPEC}
    if any(type(number) is not int for number in numbers.values()) or type(value) is not dict:
        raise Unusual
    return SimpleNamespace(**numbers)
