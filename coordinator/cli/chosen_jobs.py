"""``gnt-job``: cancel, change-priority and archive, of jobs by number or by how far they are."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from common.errors import Conflict, GntError, InvalidRequest
from common.luxi.client import Client
from coordinator.cli.asking import ask
from coordinator.cli.confirm import confirm
from coordinator.cli.connection import connect
from coordinator.cli.job_numbers import job_parser, read_numbers
from coordinator.cli.parser import Parser, add_ignored
from coordinator.cli.priority import read_priority
from coordinator.cli.refused import add_refused
from coordinator.cli.table import table
from coordinator.cli.telling import print_failure, tell

IGNORED = ("--yes-do-it", "--ya-rly")  # Ganeti's, beside --kill, and nothing is killed
_SHOWN = ("id", "status", "summary")
_STATES = {  # in which a job can be cancelled, or put before others, with profit
    "pending": (("queued", "waiting"), "all that have not begun, or wait for locks"),
    "queued": (("queued",), "all that have not begun"),
    "waiting": (("waiting",), "all that wait for locks"),
}


def cancel(command: str, words: Sequence[str]) -> int:
    """``gnt-job cancel``."""
    parser = _choosing(command, "Cancel jobs; one that runs is undone.")
    add_ignored(parser, IGNORED)
    options = parser.parse_args(words)
    return _for_each(options, "CancelJob", question="Cancel these jobs?")


def change_priority(command: str, words: Sequence[str]) -> int:
    """``gnt-job change-priority``."""
    parser = _choosing(command, "Have jobs that wait go earlier or later.")
    parser.add_argument(
        "--priority",
        required=True,
        metavar="low|normal|high",
        help="or a number, -20 being the most urgent",
    )
    options = parser.parse_args(words)
    further = (read_priority(options.priority),)
    return _for_each(options, "ChangeJobPriority", *further, question="Change their priority?")


def archive(command: str, words: Sequence[str]) -> int:
    """``gnt-job archive``."""
    parser = job_parser(command, "Put jobs that have ended out of sight.", count="+")
    return _for_each(parser.parse_args(words), "ArchiveJob")


def _choosing(command: str, description: str) -> Parser:
    parser = job_parser(command, description, count="*")
    states = parser.add_mutually_exclusive_group()
    for state, (_, doc) in _STATES.items():
        states.add_argument(f"--{state}", dest="state", action="store_const", const=state, help=doc)
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    add_refused(parser, command)
    return parser


def _for_each(options: argparse.Namespace, method: str, *further: Any, question: str = "") -> int:
    failures: list[GntError] = []
    with connect() as client:
        for number in _chosen(client, options, question):
            try:
                told = client.call(method, number, *further)
            except GntError as error:
                failures.append(error)
                continue
            match told:
                case [bool(done), str(message)]:
                    pass
                case _:
                    done = bool(told)
                    message = f"Job {number} is archived." if done else f"Job {number} stays."
            tell(options, {"id": number, "done": done, "message": message}, message)
            if not done:
                failures.append(GntError(f"Job {number} is as it was."))
    for failure in failures[:-1]:
        print_failure(failure)
    if failures:
        raise failures[-1]
    return 0


def _chosen(client: Client, options: argparse.Namespace, question: str) -> list[int]:
    """Return the jobs that are named, or those of a state, which the operator has confirmed."""
    state = getattr(options, "state", None)
    if bool(options.jobs) == (state is not None):
        raise InvalidRequest("Give either numbers of jobs or the state of those that are meant.")
    if state is None:
        return read_numbers(options.jobs)
    statuses, _ = _STATES[state]
    condition = ["|", *(["==", "status", status] for status in statuses)]
    rows = [[value for _, value in row] for row in ask(client, "job", _SHOWN, condition).rows]
    if not rows:
        raise Conflict(f"There are no {state} jobs.")
    if not options.force:
        cells = [[str(value) for value in (*row[:2], ", ".join(row[2]))] for row in rows]
        for line in table(["ID", "Status", "Summary"], cells, right=[True, False, False]):
            print(line, file=sys.stderr)  # a part of the question
        confirm(question)
    return [number for number, *_ in rows]
