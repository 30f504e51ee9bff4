"""The commands that submit a job: ask, submit, and follow it to its end."""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from common.errors import Conflict, GntError, NoCapacity
from common.luxi.client import Client, ConnectionLost
from common.luxi.failures import from_ganeti
from coordinator.cli.confirm import confirm
from coordinator.cli.connection import connect
from coordinator.cli.derive import add_fields, read_fields
from coordinator.cli.follow import Ended, follow
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser, add_ignored, add_json
from coordinator.cli.priority import read_priority
from coordinator.cli.refused import add_refused
from coordinator.cli.select_os import select_os
from coordinator.cli.selection import Chosen, add_selection, choose
from coordinator.cli.telling import in_words, print_failure, write
from coordinator.operations.base import Operation, read_operation
from coordinator.operations.catalogue import Entry
from coordinator.operations.parameter import ASK
from coordinator.operations.registry import find_operation


def submit(name: str, entry: Entry, words: Sequence[str]) -> int:
    """Run the command of an operation; return the exit code."""
    operation = find_operation(entry.opcode)
    options = parser_for(name, operation, entry).parse_args(words)
    asks = bool(entry.confirm) and not (_is_sure(options) or options.dry_run)
    with connect() as client:
        chosen = None
        if entry.many:
            names = getattr(options, entry.many)
            chosen = choose(client, _kind(entry), names, options.way, exist=asks)
        fields = read_fields(operation, options) | (dict(entry.for_json) if options.json else {})
        if fields.get("os_type") == ASK:
            fields["os_type"] = select_os(client)
        if asks and chosen is None:
            fields |= _whole_name(client, entry, fields)
        jobs = _jobs(entry, fields, options, chosen)
        # The coordinator would say the same of bad parameters, after a round trip.
        orders = [read_operation(job[0]) for job in jobs]
        for question in filter(None, (order.question() for order in orders)):
            if not (_is_sure(options) or options.dry_run):
                confirm(question)
        _confirm(entry, chosen.names if chosen else fields.values(), chosen, options)
        return run_jobs(client, jobs, options, labels=chosen.names if chosen else ())


def _is_sure(options: argparse.Namespace) -> bool:
    """Tell whether an operator who was asked would say yes."""
    return bool(options.force or options.yes)


def _whole_name(client: Client, entry: Entry, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the field that says which object it is, of one that exists."""
    key, word = next(iter(fields.items()))
    return {key: full_names(client, _kind(entry), [word])[0]}


def _kind(entry: Entry) -> str:
    """Return what a command is about: ``node`` where it is one of ``gnt-node``."""
    return entry.command.partition(" ")[0].removeprefix("gnt-")


def _jobs(
    entry: Entry, fields: dict[str, Any], options: argparse.Namespace, chosen: Chosen | None
) -> list[list[dict[str, Any]]]:
    program = entry.command.partition(" ")[0]
    wire = {"OP_ID": entry.opcode, **fields, **common_fields(program, options)}
    return [[wire]] if chosen is None else [[wire | {entry.many: name}] for name in chosen.names]


def _confirm(
    entry: Entry,
    objects: Iterable[Any],
    chosen: Chosen | None,
    options: argparse.Namespace,
) -> None:
    several = chosen is not None and not chosen.named and len(chosen.names) > 1
    question = entry.confirm or (entry.confirm_many if several else "")
    if not question or options.dry_run:
        return
    if (entry.confirm and _is_sure(options)) or (several and options.force_multiple):
        return
    names = list(objects)[: None if chosen else 1]
    confirm(question.format(in_words([str(name) for name in names])))


def parser_for(name: str, operation: type[Operation[Any, Any]], entry: Entry) -> Parser:
    """Return the parser of an operation's command: its fields, and what all jobs have."""
    parser = Parser(name, (operation.__doc__ or "").strip())
    add_fields(parser, operation, many=entry.many)
    if entry.many:
        add_selection(parser, _kind(entry))
    add_job_options(parser, verbose="verbose" not in operation.parameters())
    asks = entry.confirm or operation.question is not Operation.question
    parser.set_defaults(yes=False)
    if asks and "force" in operation.parameters():  # which means more
        parser.add_argument("--yes", action="store_true", help="do not ask")
    elif asks:
        parser.add_argument("-f", "--force", "--yes", action="store_true", help="do not ask")
    if asks:
        parser.set_defaults(force=False)
    add_ignored(parser, entry.ignored)
    add_refused(parser, name)
    return parser


def add_job_options(parser: argparse.ArgumentParser, *, verbose: bool = True) -> None:
    """Add what all commands that submit jobs understand, ``-v`` if they have none of their own."""
    group = parser.add_argument_group("options of all jobs")
    if verbose:
        group.add_argument("-v", "--verbose", action="store_true", help="show details, too")
    group.add_argument("--submit", action="store_true", help="do not wait for the job's end")
    group.add_argument("--print-jobid", action="store_true", help="print the job's number first")
    group.add_argument("--dry-run", action="store_true", help="check, and print what would be done")
    group.add_argument(
        "--priority",
        default="normal",
        metavar="low|normal|high",
        help="or a number, -20 being the most urgent",
    )
    group.add_argument("--reason", metavar="TEXT", help="why, for whoever reads the job later")
    add_json(parser)


def common_fields(program: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of all jobs add to each opcode.

    Raises:
        InvalidRequest: the priority is none.
    """
    wire: dict[str, Any] = {}
    if options.dry_run:
        wire["dry_run"] = True
    if options.priority != "normal":
        wire["priority"] = read_priority(options.priority)
    if options.reason:
        wire["reason"] = [[f"gnt:client:{program}", options.reason, time.time_ns()]]
    return wire


def run_jobs(
    client: Client,
    jobs: Sequence[list[dict[str, Any]]],
    options: argparse.Namespace,
    labels: Sequence[str] = (),
) -> int:
    """Submit jobs of one operation each and, unless told not to, follow them.

    Args:
        client: whom to ask.
        jobs: each a list of operations.
        options: of the command line.
        labels: whom each job is about; told before each line when there are several.

    Returns:
        The exit code: that of the first one that failed.

    Raises:
        GntError: the only job was refused, or failed.
    """
    numbers = _submit(client, jobs)
    accepted = [number for number in numbers if isinstance(number, int)]
    if options.print_jobid:
        print(*accepted, sep="\n", flush=True)
    if options.submit:
        for number in accepted:
            print(f"JobID: {number}", file=sys.stderr)
        if options.json:
            write(options.json, [{"job": number} for number in accepted])
        return _report([n for n in numbers if isinstance(n, GntError)])
    progress = sys.stderr if options.json else sys.stdout
    details = getattr(options, "verbose", False)
    marks = labels if len(jobs) > 1 else [""] * len(jobs)
    ended = [
        follow(client, number, out=progress, label=label, details=details)
        for number, label in zip(numbers, marks or [""] * len(jobs), strict=True)
        if isinstance(number, int)
    ]
    last = ended
    while last := _follow_others(client, last, progress, details=details):
        ended += last
    if options.json:
        write(options.json, [end.to_json() for end in ended], indent=2)
    elif options.dry_run:
        taken = [job for job, number in zip(jobs, numbers, strict=True) if number in accepted]
        for job, end in zip(taken, ended, strict=False):
            _print_dry_run(job, end)
    failures = [n for n in numbers if isinstance(n, GntError)]
    failures += [end.failure for end in ended if end.failure]
    failures += [lack for end in ended for lack in map(_find_lack, end.results) if lack]
    return _report(failures) or int(any(_is_bad(r) for end in ended for r in end.results))


def _follow_others(
    client: Client, ended: Sequence[Ended], out: TextIO, *, details: bool
) -> list[Ended]:
    """Follow the jobs that jobs have left to others."""
    numbers = [
        int(told)
        for end in ended
        for result in end.results
        if isinstance(result, dict)
        for good, told in result.get("jobs", ())
        if good
    ]
    labels = [""]
    if len(numbers) > 1:
        labels = [_about(row) for row in client.call("QueryJobs", numbers, ["summary"])]
    return [
        follow(client, number, out=out, label=label, details=details)
        for number, label in zip(numbers, labels, strict=False)
    ]


def _about(row: Any) -> str:
    """Return what a job is about: ``web1`` where its summary is ``INSTANCE_MIGRATE(web1)``."""
    match row:
        case [[str(summary), *_]] if summary.endswith(")"):
            return summary.rpartition("(")[2].removesuffix(")")
        case _:
            return ""


def _submit(client: Client, jobs: Sequence[list[dict[str, Any]]]) -> list[int | GntError]:
    try:
        if len(jobs) == 1:
            return [int(client.call("SubmitJob", jobs[0]))]
        told = client.call("SubmitManyJobs", list(jobs))
    except ConnectionLost as error:
        raise ConnectionLost(
            "The coordinator hung up before it said whether it took the job; “gnt-job list” will "
            "tell."
        ) from error
    return [int(value) if accepted else from_ganeti(value) for accepted, value in told]


def _report(failures: Sequence[GntError]) -> int:
    """Raise the only failure; print all but the last of several."""
    if not failures:
        return 0
    for failure in failures[:-1]:
        print_failure(failure)
    raise failures[-1]


def _find_lack(result: Any) -> GntError | None:
    """Return what a job that succeeded has left undone."""
    if not isinstance(result, dict) or "jobs" not in result:
        return None
    if result.get("stayed"):
        return Conflict(f"{in_words(result['stayed'])} could not move, so everything comes back.")
    if result.get("failed"):
        return NoCapacity(f"No node was found for {in_words(result['failed'])}.")
    refused = next((told for good, told in result["jobs"] if not good), None)
    return None if refused is None else from_ganeti(refused)


def _is_bad(result: Any) -> bool:
    """Tell whether a job that succeeded was a look that found an error."""
    if isinstance(result, list):
        return any(isinstance(each, dict) and each.get("severity") == "ERROR" for each in result)
    return result is False


def _print_dry_run(job: Sequence[dict[str, Any]], end: Ended) -> None:
    if end.failure is not None:  # whose words are told; results are then Ganeti's form of them
        return
    for wire, result in zip(job, end.results, strict=True):
        if isinstance(result, list):
            print(*find_operation(wire["OP_ID"]).show_dry_run(result), sep="\n")
