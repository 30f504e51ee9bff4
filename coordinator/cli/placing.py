"""``gnt-cluster allocate``, ``capacity`` and ``balance``: what the allocator would do, and why."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from common.errors import NoCapacity
from common.model.parameters import Backend
from common.model.template import DiskTemplate
from coordinator.cli.connection import connect
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.keyval import parse_devices, parse_keyval, split_escaped
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.run_jobs import run_jobs
from coordinator.cli.table import table
from coordinator.cli.telling import tell
from coordinator.cli.typed import typed


def allocate(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster allocate``."""
    parser = Parser(command, "Tell where an instance would go; nothing is done.")
    _add_wish(parser)
    parser.add_argument(
        "--explain",
        action="store_true",
        help="tell the score, the runners-up, and who was left out",
    )
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        told = client.call("AskAllocator", {"type": "allocate", **_wish(options)})
    nodes = told["nodes"]
    sentences = [f"Selected nodes for the instance: {', '.join(nodes)}"] if nodes else []
    if options.explain:
        sentences += _explanation(told)
    tell(options, told, *sentences)
    if not nodes:
        raise NoCapacity("It fits nowhere." + ("" if options.explain else " Try --explain."))
    return 0


def capacity(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster capacity``."""
    parser = Parser(command, "Tell how many instances of one kind fit; nothing is done.")
    _add_wish(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="count to N only")
    parser.add_argument("--nodes", action="store_true", help="tell where each of them would go")
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        question = {"type": "capacity", "limit": options.limit, **_wish(options)}
        told = client.call("AskAllocator", question)
    count = told["count"]
    sentences = ["1 instance fits." if count == 1 else f"{count} instances fit."]
    if options.nodes:
        places = enumerate(told["placements"], 1)
        sentences += [f"{number:6}. {', '.join(nodes)}" for number, nodes in places]
    sentences += _left_out(told["refused"])
    tell(options, told, *sentences)
    return 0


def balance(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster balance``."""
    parser = Parser(
        command, "Tell which moves would balance the cluster, and make them if told to."
    )
    parser.add_argument("-l", "--max-moves", type=int, metavar="N", help="at most so many moves")
    parser.add_argument("-g", "--node-group", metavar="GROUP", help="only in this group")
    parser.add_argument(
        "-X",
        "--exec",
        action="store_true",
        dest="execute",
        help="make the moves, one after the other, as jobs",
    )
    add_job_options(parser)
    options = parser.parse_args(words)
    question = {"type": "balance", "max_operations": options.max_moves, "group": options.node_group}
    common = common_fields("gnt-cluster", options)
    with connect() as client:
        told = client.call("AskAllocator", question)
        if not options.execute:
            tell(options, told, *_moves(told))
            return 0
        if not options.json:
            print(*_moves(told), sep="\n")
        jobs = [[operation | common for operation in job] for job in told["jobs"]]
        return run_jobs(client, jobs, options)


def _moves(told: dict[str, Any]) -> Iterator[str]:
    yield f"{told['info'][:1].upper()}{told['info'][1:]}."
    for number, (instance, group, nodes) in enumerate(told["moves"], 1):
        yield f"{number:4}. {instance} goes to {', '.join(nodes)} (group {group})"


def _add_wish(parser: argparse.ArgumentParser) -> None:
    """Add what describes an instance, as ``gnt-instance add`` has it."""
    templates = [template.value for template in DiskTemplate]
    parser.add_argument(
        "-t",
        "--disk-template",
        required=True,
        choices=templates,
        metavar="|".join(templates),
        help="how its disks are kept",
    )
    parser.add_argument(
        "--disk", action="append", default=[], metavar="N:size=SIZE", help="one for each disk"
    )
    parser.add_argument(
        "-B",
        "--backend-parameters",
        default="",
        metavar="NAME=VALUE,…",
        help="memory=SIZE,vcpus=N,…; else the cluster's",
    )
    parser.add_argument("--tags", default="", metavar="A,B,…", help="its tags")
    parser.add_argument("-g", "--node-group", metavar="GROUP", help="only in this group")


def _wish(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "disk_template": options.disk_template,
        "disks": parse_devices(options.disk),
        "beparams": typed(parse_keyval(options.backend_parameters), Backend),
        "tags": split_escaped(options.tags) if options.tags else [],
        "group": options.node_group,
    }


def _explanation(told: dict[str, Any]) -> Iterator[str]:
    before, after = told["score_before"], told["score_after"]
    if before is None:
        yield "All storage is exclusive: what keeps most room for large instances is best."
    elif after is None:
        yield f"The score is {before:.6f}."
    else:
        yield f"The score goes from {before:.6f} to {after:.6f}; lower is better."
    if told["parts"]:
        yield from _columns(
            ("Part of the score", "Before", "After"),
            [(p["words"], f"{p['before']:.6f}", f"{p['after']:.6f}") for p in told["parts"]],
            right=(False, True, True),
        )
    if told["runners_up"]:
        yield from _columns(
            ("Runners-up", "Score"),
            [(", ".join(c["nodes"]), f"{c['score']:.6f}") for c in told["runners_up"]],
            right=(False, True),
        )
    yield from _left_out(told["refused"])


def _left_out(refused: dict[str, str]) -> Iterator[str]:
    if refused:
        yield ""
        yield "Left out:"
        yield from (f"  {name} {why}." for name, why in refused.items())


def _columns(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]
) -> Iterator[str]:
    yield ""
    yield from table(titles, rows, right=right)
