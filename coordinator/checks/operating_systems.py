"""Operating systems that not all nodes can install, or not in the same way."""

from collections.abc import Iterator

from common.noderpc.operating_systems import DefinitionReport
from coordinator.checks.finding import Finding, Seen, Severity

CODE = "ENODEOS"


def check_systems(seen: Seen) -> Iterator[Finding]:
    """Name definitions that cannot be used, that a node lacks, or that differ among nodes."""
    there = [(node, report) for node, report in seen.answered() if node.vm_capable]
    first: dict[str, tuple[str, DefinitionReport]] = {}
    for node, report in there:
        for each in report.systems:
            if not each.problem:
                first.setdefault(each.name, (node.name, each))
    for node, report in there:
        own = {each.name: each for each in report.systems}
        for name in sorted(first.keys() | own.keys()):
            found = own.get(name)
            if found is None:
                what = f"lacks the operating system {name}, which {first[name][0]} has"
            elif found.problem:
                what = f"cannot install the operating system {name}: {found.problem}"
            elif difference := _difference(found, first[name][1]):
                other = first[name][0]
                what = f"has other {difference} of the operating system {name} than {other}"
            else:
                continue
            yield Finding(CODE, "node", node.name, what, Severity.WARNING)


def _difference(one: DefinitionReport, other: DefinitionReport) -> str:
    """Say in what two definitions of one name differ, or nothing."""
    parts = {
        "versions of the interface": (set(one.api_versions), set(other.api_versions)),
        "variants": (set(one.variants), set(other.variants)),
        "parameters": (set(one.parameters), set(other.parameters)),
    }
    return " and ".join(what for what, (left, right) in parts.items() if left != right)
