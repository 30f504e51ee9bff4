"""The commands that submit an operation: from words to jobs, and what is asked before."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from common.luxi.client import Client
from coordinator.cli.confirm import confirm
from coordinator.cli.connection import connect
from coordinator.cli.derive import add_fields, read_fields
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.names import all_names, full_names
from coordinator.cli.parser import Parser, add_ignored
from coordinator.cli.refused import add_refused
from coordinator.cli.run_jobs import run_jobs
from coordinator.cli.select_os import select_os
from coordinator.cli.selection import Chosen, add_selection, choose
from coordinator.cli.spelled import read_order
from coordinator.cli.telling import in_words
from coordinator.operations.base import Operation
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
            takes = operation.takes_reservations
            chosen = choose(client, _kind(entry), names, options.way, exist=asks, reserved=takes)
        elif entry.every:
            chosen = _of_every(client, entry, getattr(options, entry.every))
        fields = read_fields(operation, options) | (dict(entry.for_json) if options.json else {})
        if fields.get("os_type") == ASK:
            fields["os_type"] = select_os(client)
        if asks and chosen is None and _kind(entry) != "cluster":  # which there is one of
            fields |= _whole_name(client, entry, fields)
        jobs = _jobs(entry, fields, options, chosen)
        # The coordinator would say the same of bad parameters, after a round trip.
        orders = [read_order(job[0]) for job in jobs]
        for question in filter(None, (order.question() for order in orders)):
            if not (_is_sure(options) or options.dry_run):
                confirm(question)
        _confirm(entry, chosen.names if chosen else fields.values(), chosen, options)
        return run_jobs(client, jobs, options, labels=chosen.names if chosen else ())


def _of_every(client: Client, entry: Entry, words: Sequence[str]) -> Chosen:
    """Return the objects that were named, or all there are."""
    kind = entry.every.removesuffix("_name")
    names = full_names(client, kind, words) if words else all_names(client, kind)
    return Chosen(tuple(names), named=bool(words))


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
    about = entry.many or entry.every
    return [[wire]] if chosen is None else [[wire | {about: name}] for name in chosen.names]


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
    add_fields(parser, operation, many=entry.many, every=entry.every)
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
