"""The commands about operating systems: ``gnt-os``."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.model.hypervisors import HYPERVISORS
from coordinator.cli.connection import connect
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.keyval import parse_identkeyval, parse_keyval
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.run_jobs import run_jobs
from coordinator.cli.select_os import full
from coordinator.cli.storage import run
from coordinator.cli.telling import write
from coordinator.cli.tree import tree
from coordinator.cli.typed import read_yes_no, typed

_LISTED = ("name", "variants")
_DIAGNOSED = ("name", "valid", "variants", "node_status", "hidden", "blacklisted")
_SHOWN = (
    "name", "valid", "variants", "parameters", "api_versions", "blacklisted", "hidden", "os_hvp",
    "osparams", "trusted",
)  # fmt: skip
_WITH_VARIANTS, _WITH_PARAMETERS = 15, 20  # versions of the interface

Told = Mapping[str, Any]


def list_systems(command: str, words: Sequence[str]) -> int:
    """``gnt-os list``."""
    parser = _parser(command, "List what can be installed on new instances.")
    parser.add_argument("--no-headers", action="store_true", help="without a title")
    options = parser.parse_args(words)
    found = _ask(options, _LISTED)
    names = [name for each in found for name in full(each["name"], each["variants"])]
    if options.json:
        write(options.json, names, indent=2)
        return 0
    print(*([] if options.no_headers else ["Name"]), *names, sep="\n")
    return 0


def diagnose(command: str, words: Sequence[str]) -> int:
    """``gnt-os diagnose``: exits with 1 if a node lacks a definition, or cannot use it."""
    options = _parser(command, "Tell which node can install what, and why not.").parse_args(words)
    found = _ask(options, _DIAGNOSED)
    if options.json:
        write(options.json, found, indent=2)
    for each in () if options.json else found:
        print(*_diagnosis(each), "", sep="\n")
    return 0 if all(each["valid"] for each in found) else 1


def info(command: str, words: Sequence[str]) -> int:
    """``gnt-os info``."""
    parser = _parser(command, "Show all about operating systems.")
    parser.add_argument("names", nargs="*", metavar="OS", help="its name; none: all")
    options = parser.parse_args(words)
    found = _ask(options, _SHOWN)
    chosen = [each for each in found if not options.names or each["name"] in options.names]
    if options.json:
        write(options.json, chosen, indent=2)
        return 0
    for each in chosen:
        print(*_description(each), "", sep="\n")
    for name in sorted(set(options.names) - {each["name"] for each in found}):
        print(f"{name}: no node has it", "", sep="\n")
    return 0


def modify(command: str, words: Sequence[str]) -> int:
    """``gnt-os modify``."""
    about = "Change what the cluster has for an operating system; “default” takes a value away."
    parser = Parser(command, about)
    parser.add_argument("name", metavar="OS", help="its name, or with a variant: OS+VARIANT")
    parser.add_argument(
        "-H", "--hypervisor-parameters", action="append", default=[],
        metavar="HYPERVISOR:NAME=VALUE,…", help="of its instances, as in kvm:acpi=no",
    )  # fmt: skip
    parser.add_argument(
        "-O", "--os-parameters", metavar="NAME=VALUE,…", help="its own, for all its instances"
    )
    parser.add_argument(
        "--os-parameters-private", metavar="NAME=VALUE,…", help="kept, and shown to nobody"
    )
    parser.add_argument("--hidden", metavar="yes|no", help="in no list of what can be installed")
    parser.add_argument("--blacklisted", metavar="yes|no", help="installed by nobody")
    add_job_options(parser)
    options = parser.parse_args(words)
    name, wire = options.name, {"OP_ID": "OP_CLUSTER_SET_PARAMS"} | _changes(options)
    if len(wire) == 1:
        parser.error(f"say what is to be changed of {name}")
    with connect() as client:
        return run_jobs(client, [[wire | common_fields("gnt-os", options)]], options)


def _changes(options: Any) -> dict[str, Any]:
    name = options.name
    changes: dict[str, Any] = {}
    if options.hypervisor_parameters:
        layers: dict[str, dict[str, Any]] = {}
        for word in options.hypervisor_parameters:
            hypervisor, values = parse_identkeyval(word)
            kinds = (HYPERVISORS[hypervisor],) if hypervisor in HYPERVISORS else ()
            layers[hypervisor] = layers.get(hypervisor, {}) | typed(values, *kinds)
        changes["os_hvp"] = {name: layers}
    for field, word in (
        ("osparams", options.os_parameters),
        ("osparams_private_cluster", options.os_parameters_private),
    ):
        if word is not None:
            changes[field] = {name: parse_keyval(word)}
    for field, word in (("hidden_os", options.hidden), ("blacklisted_os", options.blacklisted)):
        if word is not None:
            changes[field] = [["add" if read_yes_no(word) else "remove", name]]
    return changes


def _parser(command: str, about: str) -> Parser:
    parser = Parser(command, about)
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    parser.set_defaults(dry_run=False, reason=None)
    add_json(parser)
    return parser


def _ask(options: Any, fields: Sequence[str]) -> list[Told]:
    wire = {"OP_ID": "OP_OS_DIAGNOSE", "output_fields": fields, "names": []}
    rows = run(wire | common_fields("gnt-os", options))
    return [dict(zip(fields, row, strict=True)) for row in rows]


def _diagnosis(told: Told) -> list[str]:
    good: list[str] = []
    bad: list[str] = []
    for node, there in told["node_status"].items():
        line = f"  Node: {node}, status: {_status(there)}"
        (good if there and there[0][1] else bad).append(line)
    status = "valid" if not bad else "partial valid" if good else "invalid"
    marks = "".join(f" [{mark}]" for mark in ("hidden", "blacklisted") if told[mark])
    variants = told["variants"]
    return [
        f"OS: {told['name']} [global status: {status}]{marks}",
        *([f"  Variants: [{', '.join(variants)}]"] if variants else []),
        *good,
        *bad,
    ]


def _status(there: Sequence[Sequence[Any]]) -> str:
    if not there:
        return "OS not found"
    path, is_valid, problem, variants, parameters, versions, is_trusted = there[0]
    newest = max(versions, default=0)
    status = "valid" if is_valid else f"invalid - {problem}"
    known = ", ".join(map(str, versions))
    parts = [f"API versions: {known}" if known else "no API versions declared"]
    if newest >= _WITH_VARIANTS:
        parts.append(f"variants: {', '.join(variants)}" if variants else "no variants")
    if newest >= _WITH_PARAMETERS:
        names = ", ".join(name for name, _ in parameters)
        parts.append(f"parameters: {names}" if names else "no parameters")
    parts.append("trusted" if is_trusted else "untrusted")
    return f"{status} (path: {path or 'a part of Gantry'}) {' '.join(f'[{p}]' for p in parts)}"


def _description(told: Told) -> list[str]:
    lists = {
        "API versions": sorted(told["api_versions"]),
        "variants": told["variants"],
        "parameters": [f"{name}: {about}" for name, about in told["parameters"]],
    }
    lines = [
        f"{told['name']}:",
        *(f"  - {mark}: {told[mark]}" for mark in ("valid", "hidden", "blacklisted")),
    ]
    for title, items in lists.items() if told["valid"] else ():
        lines += [f"  - {title}:", *(f"    - {item}" for item in items)]
    lines.append(f"  - trusted: {told['trusted']}")
    settings = {
        "hypervisor parameters of its instances": told["os_hvp"],
        "parameters set for the cluster": told["osparams"],
    }
    given = {title: values for title, values in settings.items() if values}
    return lines + [f"  {line}" for line in tree(given)]
