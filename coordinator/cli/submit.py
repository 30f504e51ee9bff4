"""The commands that submit a job: ask, submit, and follow it to its end."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from common.errors import Conflict, GntError, InvalidRequest
from common.luxi.client import Client, ConnectionLost
from common.luxi.failures import from_ganeti
from coordinator.cli.commands import Command
from coordinator.cli.connection import connect
from coordinator.cli.derive import add_fields, read_fields
from coordinator.cli.follow import Ended, follow
from coordinator.cli.parser import Parser, add_json
from coordinator.operations.base import Operation, read_operation
from coordinator.operations.registry import find_operation

PRIORITIES = {"low": 10, "normal": 0, "high": -10}


class NeedsConfirmation(Conflict):
    """Nobody was there to ask, or the answer was no."""

    code = "conflict.needs-confirmation"
    exit_code = 13


def submit(name: str, command: Command, words: Sequence[str]) -> int:
    """Run a command whose module declares an operation; return the exit code."""
    operation = find_operation(command.opcode)
    parser = parser_for(name, operation, command)
    options = parser.parse_args(words)
    fields = read_fields(operation, options) | (command.for_json if options.json else {})
    if command.many:
        key = next(iter(operation.parameters()))
        each = [fields | {key: value} for value in getattr(options, key)]
    else:
        each = [fields]
    jobs = [[wire_form(operation, fields, options)] for fields in each]
    for job in jobs:
        read_operation(job[0])  # the coordinator would say the same, after a round trip
    if command.confirm and not options.force and not options.dry_run:
        confirm(command.confirm.format(next(iter(each[0].values()))))
    with connect() as client:
        return run_jobs(client, jobs, options)


def parser_for(name: str, operation: type[Operation[Any]], command: Command) -> Parser:
    """Return the parser of an operation's command: its fields, and what all jobs have."""
    parser = Parser(name, (operation.__doc__ or "").strip())
    add_fields(parser, operation, many=command.many)
    add_job_options(parser)
    if command.confirm and "force" not in operation.parameters():
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    if command.confirm:
        parser.set_defaults(force=False)
    return parser


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add what all commands that submit jobs understand."""
    group = parser.add_argument_group("options of all jobs")
    group.add_argument("--submit", action="store_true", help="do not wait for the job's end")
    group.add_argument("--print-jobid", action="store_true", help="print the job's number first")
    group.add_argument("--dry-run", action="store_true", help="check, and print what would be done")
    group.add_argument("--priority", default="normal", metavar="low|normal|high",
                       help="or a number, -20 being the most urgent")  # fmt: skip
    group.add_argument("--reason", metavar="TEXT", help="why, for whoever reads the job later")
    add_json(parser)


def wire_form(
    operation: type[Operation[Any]], fields: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Return an opcode as it is submitted.

    Raises:
        InvalidRequest: the priority is none.
    """
    program = operation.command.split()[0]
    return {"OP_ID": operation.opcode, **fields, **common_fields(program, options)}


def common_fields(program: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of all jobs add to each opcode.

    Raises:
        InvalidRequest: the priority is none.
    """
    wire: dict[str, Any] = {}
    if options.dry_run:
        wire["dry_run"] = True
    if options.priority != "normal":
        wire["priority"] = _priority(options.priority)
    if options.reason:
        wire["reason"] = [[f"gnt:client:{program}", options.reason, time.time_ns()]]
    return wire


def run_jobs(
    client: Client, jobs: Sequence[list[dict[str, Any]]], options: argparse.Namespace
) -> int:
    """Submit jobs of one operation each and, unless told not to, follow them.

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
            print(json.dumps([{"job": number} for number in accepted]))
        return _report([n for n in numbers if isinstance(n, GntError)])
    progress = sys.stderr if options.json else sys.stdout
    ended = [follow(client, number, out=progress) for number in accepted]
    ended += [
        follow(client, int(told), out=progress)
        for end in ended
        for result in end.results
        if isinstance(result, dict)
        for good, told in result.get("jobs", ())
        if good
    ]
    if options.json:
        print(json.dumps([end.to_json() for end in ended], indent=2, ensure_ascii=False))
    elif options.dry_run:
        taken = [job for job, number in zip(jobs, numbers, strict=True) if number in accepted]
        for job, end in zip(taken, ended, strict=False):
            _print_dry_run(job, end)
    failures = [n for n in numbers if isinstance(n, GntError)]
    code = _report(failures + [end.failure for end in ended if end.failure])
    return code or int(any(_is_lacking(result) for end in ended for result in end.results))


def confirm(question: str) -> None:
    """Ask the operator.

    Raises:
        NeedsConfirmation: the answer is not yes, or there is no terminal.
    """
    if not sys.stdin.isatty():
        raise NeedsConfirmation(f"{question} Give --force to say yes where nobody can be asked.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NeedsConfirmation("Nothing was done.")


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
        print(f"Failure: {failure.message}", file=sys.stderr)
    raise failures[-1]


def _is_lacking(result: Any) -> bool:
    """Tell whether a job that succeeded found something wrong, or left something undone."""
    if not isinstance(result, dict) or "jobs" not in result:
        return result is False or (isinstance(result, list) and any(map(_is_error, result)))
    return bool(result.get("failed")) or not all(good for good, _ in result["jobs"])


def _is_error(finding: Any) -> bool:
    return isinstance(finding, dict) and finding.get("severity") == "ERROR"


def _print_dry_run(job: Sequence[dict[str, Any]], end: Ended) -> None:
    if end.failure is not None:  # whose words are told; results are then Ganeti's form of them
        return
    for wire, result in zip(job, end.results, strict=True):
        if isinstance(result, list):
            print(*find_operation(wire["OP_ID"]).show_dry_run(result), sep="\n")


def _priority(text: str) -> int:
    if text in PRIORITIES:
        return PRIORITIES[text]
    try:
        number = int(text)
    except ValueError:
        number = 99
    if not -20 <= number <= 19:
        raise InvalidRequest(f"--priority: “{text}” is none of low, normal, high, -20 … 19.")
    return number
