"""An empty cluster made up from a few numbers, to plan with."""

from collections.abc import Sequence

from common.errors import InvalidRequest
from common.model.allocation_policy import AllocationPolicy
from coordinator.allocator.policy import Spec
from coordinator.allocator.snapshot import Group, Node, Snapshot

_POLICIES = {policy.value: policy for policy in AllocationPolicy} | {
    "p": AllocationPolicy.PREFERRED,
    "a": AllocationPolicy.LAST_RESORT,
    "u": AllocationPolicy.UNALLOCABLE,
}
_UNITS = {
    "": 1.0, "m": 1.0, "mib": 1.0, "g": 1024.0, "gib": 1024.0, "t": 1048576.0, "tib": 1048576.0,
}  # fmt: skip
_DECIMAL = {"M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12}
_USUAL = {5: ("1", "False"), 6: ("False",), 7: ()}  # spindles and exclusive storage, if left out
_MOST = 1 << 50  # MiB


def simulated(specs: Sequence[str]) -> Snapshot:
    """Make a cluster: one group per ``policy,nodes,disk,memory,cpus[,spindles[,exclusive]]``.

    The last one given is group 1, as with Ganeti's tools.

    Raises:
        InvalidRequest: a specification cannot be read; it is named.
    """
    groups: list[Group] = []
    nodes: list[Node] = []
    for at, spec in enumerate(reversed(specs), 1):
        fields = spec.split(",")
        try:
            policy, count, disk, memory, cpus, spindles, exclusive = *fields, *_USUAL[len(fields)]
            alloc_policy, size = _POLICIES[policy], int(count)
            all_cpus, all_spindles = int(cpus), int(spindles)
        except (KeyError, ValueError) as error:
            raise InvalidRequest(f"Invalid cluster specification '{spec}'") from error
        groups.append(
            Group(name=f"group-{at:02d}", uuid=f"fake-uuid-{at:02d}", alloc_policy=alloc_policy)
        )
        nodes += [
            Node(
                name=f"node-{at:02d}-{number:03d}",
                group=at - 1,
                total_memory=parse_unit(memory),
                free_memory=parse_unit(memory),
                total_disk=parse_unit(disk),
                free_disk=parse_unit(disk),
                total_cpus=all_cpus,
                own_cpus=1,
                is_master=at == 1 and number == 1,
                spindles=all_spindles,
                exclusive=exclusive == "True",
            )
            for number in range(1, size + 1)
        ]
    return Snapshot(groups=tuple(groups), nodes=tuple(nodes))


def parse_unit(text: str) -> int:
    """Read a size: ``m``, ``g``, ``t`` are binary, ``M``, ``G``, ``T`` decimal; MiB without.

    Raises:
        InvalidRequest: it is no size.
    """
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(digits) :].strip()
    factor = _DECIMAL[unit] / 1048576 if unit in _DECIMAL else _UNITS.get(unit.lower())
    if not digits.isdigit() or factor is None:
        raise InvalidRequest(f"Unknown size '{text}', give a number and a unit such as 2g")
    size = int(int(digits) * factor) if len(digits) < 20 else _MOST
    if size >= _MOST:
        raise InvalidRequest(f"Size '{text}' is beyond all reason")
    return size


def parse_spec(text: str) -> Spec:
    """Read the size of an instance: ``disk,ram,cpu[,spindles]``.

    Raises:
        InvalidRequest: it is none.
    """
    fields = text.split(",")
    if len(fields) not in {3, 4}:
        raise InvalidRequest(f"Invalid specification '{text}', expected disk,ram,cpu[,spindles]")
    try:
        cpus, spindles = int(fields[2]), int(fields[3]) if len(fields) == 4 else 1
    except ValueError as error:
        raise InvalidRequest(
            f"Invalid specification '{text}': processors and spindles are whole numbers"
        ) from error
    return Spec(
        memory_size=parse_unit(fields[1]), cpu_count=cpus, disk_count=1,
        disk_size=parse_unit(fields[0]), nic_count=0, spindle_use=spindles,
    )  # fmt: skip
