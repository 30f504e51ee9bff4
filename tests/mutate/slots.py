"""Faults in what is counted of instances that leave a node."""

from tests.mutate.fault import Fault

_SLOTS = "coordinator/allocator/allocation/slots.py"
_TESTS = ("tests/unit/allocator/test_slots.py",)

OF_SLOTS = (
    Fault(
        "one slot too few is enough", "what is counted to find room finds it",
        _SLOTS,
        "limits) for at in common) >= len(", "limits) for at in common) + 1 >= len(",
        _TESTS,
    ),
    Fault(
        "disks stop what has none", "only what has its disks on a node needs room for them there",
        _SLOTS,
        "hard = limits if all(one.is_local for one in instances) else limits[:1]", "hard = limits",
        _TESTS,
    ),
    Fault(
        "copies that come forgotten", "mirrored instances take their room before others do",
        _SLOTS, "come[resident.secondary] += resident.demand.used_memory", "pass",
        _TESTS,
    ),
    Fault(
        "policies forgotten while counting", "what is made anew goes only where a policy lets it",
        _SLOTS,
        "[not code for code in state.model.forbidden(demand, targets)]", "[True for _ in targets]",
        _TESTS,
    ),
)  # fmt: skip
