"""The commands about providers of external storage: ``gnt-storage``."""

from collections.abc import Sequence
from typing import Any

from common.errors import NotFound
from coordinator.cli.job_options import common_fields
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.storage import run
from coordinator.cli.telling import write

_FIELDS = ("name", "node_status", "nodegroup_status", "parameters")
Told = dict[str, Any]


def diagnose(command: str, words: Sequence[str]) -> int:
    """``gnt-storage diagnose``: exits with 1 when there are no providers."""
    parser = Parser(command, "Tell where providers of external storage can be used, and why not.")
    return _show(parser, words, _diagnosis)


def info(command: str, words: Sequence[str]) -> int:
    """``gnt-storage info``."""
    parser = Parser(command, "Show in which groups providers can be used, and their parameters.")
    parser.add_argument("names", nargs="*", metavar="PROVIDER", help="its name; none: all")
    return _show(parser, words, _description)


def _show(parser: Parser, words: Sequence[str], describe: Any) -> int:
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    parser.set_defaults(dry_run=False, reason=None, names=[])
    add_json(parser)
    options = parser.parse_args(words)
    wire = {"OP_ID": "OP_EXT_STORAGE_DIAGNOSE", "output_fields": _FIELDS, "names": options.names}
    rows = run(wire | common_fields("gnt-storage", options))
    found = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    if missing := sorted(set(options.names) - {each["name"] for each in found}):
        raise NotFound(f"No node has a provider “{missing[0]}”.", provider=missing[0])
    if options.json:
        write(options.json, found, indent=2)
    for each in () if options.json else found:
        print(*describe(each), "", sep="\n")
    return 0 if found else 1


def _diagnosis(told: Told) -> list[str]:
    return [
        f"Provider: {told['name']}",
        "---",
        *(
            f"  Node: {node}, status: {_status(there)}"
            for node, there in told["node_status"].items()
        ),
        "  --",
        *(
            f"  For nodegroup: {group} --> {'valid' if is_valid else 'invalid'}"
            for group, is_valid in told["nodegroup_status"].items()
        ),
    ]


def _description(told: Told) -> list[str]:
    groups = [group for group, is_valid in told["nodegroup_status"].items() if is_valid]
    if not groups:
        return [f"{told['name']}:", "  - Invalid for all nodegroups"]
    return [
        f"{told['name']}:",
        "  - Valid for nodegroups:",
        *(f"      {group}" for group in groups),
        "  - Supported parameters:",
        *(f"      {name}: {description}" for name, description in told["parameters"]),
    ]


def _status(there: list[Any]) -> str:
    if not there:
        return "ExtStorage provider not found"
    path, is_valid, problem, parameters = there[0]
    names = ", ".join(name for name, _ in parameters)
    return (
        f"{'valid' if is_valid else f'invalid - {problem}'} (path: {path}) "
        f"[{f'parameters: {names}' if names else 'no parameters'}]"
    )
