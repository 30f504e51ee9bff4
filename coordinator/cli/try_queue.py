"""``gnt-debug test-jobqueue``: see that the job queue keeps what it promises.

What has to come of it is decided first, as values; then jobs are submitted, visited wherever they
wait for it (``coordinator.operations.test.job_queue``), and held against that.
"""

import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from common.errors import GntError
from common.luxi.client import Client
from coordinator.cli.connection import connect
from coordinator.cli.follow import NEWS_S
from coordinator.cli.parser import Parser
from coordinator.cli.priority import PRIORITIES, read_priority
from coordinator.operations.test.job_queue import (
    EXPAND_NAMES,
    MESSAGE,
    MESSAGE_PREFIX,
    QUEUE_TEST,
    START_MESSAGES,
)

MESSAGES = ("Hello World", "A", "", "B", "Foo|bar|baz", "äöü “quoted”")
PATIENCE_S = 30.0  # with a socket that the job has just named
_NO_PRIORITIES = (-21, -20, 19, 20, *(n + one for n in PRIORITIES.values() for one in (-1, 1)))
_FINAL = ("success", "error", "canceled")


class Trial(NamedTuple):
    """A job, by which of its operations are to fail."""

    what: str
    fails: tuple[bool, ...]

    @property
    def ends(self) -> list[str]:
        """How each operation has to end: what is behind one that fails fails with it."""
        return ["error" if any(self.fails[: n + 1]) else "success" for n in range(len(self.fails))]

    @property
    def says(self) -> list[str]:
        """What the job has to say: one that fails says it all first, those behind it nothing."""
        begun = self.ends.count("success") + any(self.fails)
        return list(MESSAGES) * begun


TRIALS = (
    Trial("A job succeeds", (False,)),
    Trial("A job of several operations succeeds", (False, False)),
    Trial("A job fails", (True,)),
    Trial("A job fails in the middle", (False, False, True, False)),
)


def try_queue(command: str, words: Sequence[str]) -> int:
    """Submit what has to be refused, what has to wait, and what has to end in known ways."""
    parser = Parser(
        command,
        "See that the job queue keeps what it promises: jobs that make no sense are refused, "
        "others wait for those on which they depend, and each is, says and ends as it should. The "
        "jobs do nothing, and lock the master's node for moments.",
    )
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the jobs"
    )
    options = parser.parse_args(words)
    common = {"priority": read_priority(options.priority)}
    with connect() as client:
        _try_refusals(client)
        print("Jobs that make no sense are refused.", flush=True)
        _try_order(client)
        print("Jobs wait for those on which they depend.", flush=True)
        for trial in TRIALS:
            _try(client, trial, common)
            print(f"{trial.what}, and is seen as what it is on the way.", flush=True)
    print("The job queue keeps what it promises.")
    return 0


def _delay(**more: Any) -> dict[str, Any]:
    return {"OP_ID": "OP_TEST_DELAY", "duration": 0, **more}


def _try_refusals(client: Client) -> None:
    good = [_delay()]
    wrong = [(f"of priority {n}", [_delay(), _delay(priority=n)]) for n in _NO_PRIORITIES]
    wrong.append(("that depends on one before the first", [_delay(depends=[[-9, []]])]))
    for what, job in wrong:
        for method, argument in (("SubmitJob", job), ("SubmitManyJobs", [good, job])):
            try:
                client.call(method, argument)
            except GntError:
                continue
            raise GntError(f"A job {what} was taken by {method}, and has to be refused.")


def _try_order(client: Client) -> None:
    """Submit jobs of which some depend on others; see when they began."""
    on = {1: -1, 2: -2, 4: -2}  # by its place among them: how far before it stands what it needs
    jobs = [[_delay(depends=[[on[n], ["success"]]] if n in on else [])] for n in range(5)]
    told = client.call("SubmitManyJobs", jobs)
    numbers = [number for taken, number in told if taken]
    if len(numbers) != len(jobs):
        raise GntError(f"Jobs that depend on others were refused: {told}.")
    for number in numbers:
        _visit(client, number)
    rows = client.call("QueryJobs", numbers, ["status", "opexec", "ops"])
    for place, (status, begun, ops) in enumerate(rows):
        if status != "success":
            raise GntError(f"Job {numbers[place]} ended as “{status}”, and has to succeed.")
        if place not in on:
            continue
        other = place + on[place]
        if ops[0]["depends"][0][0] != numbers[other]:
            raise GntError(f"Job {numbers[place]} does not depend on job {numbers[other]}.")
        if begun < rows[other][1]:
            raise GntError(f"Job {numbers[place]} began before job {numbers[other]}.")


def _try(client: Client, trial: Trial, common: dict[str, Any]) -> None:
    visited = {"OP_ID": "OP_TEST_JQUEUE", "notify_waitlock": True, "notify_exec": True}
    visited |= {"log_messages": MESSAGES} | common
    job = client.call("SubmitJob", [visited | {"fail": fails} for fails in trial.fails])
    _hold_against(f"Job {job} said", _visit(client, job), trial.says)
    ((ends,),) = client.call("QueryJobs", [job], ["opstatus"])
    _hold_against(f"The operations of job {job} ended as", ends, trial.ends)


def _visit(client: Client, job: int) -> list[str]:
    """Follow a job to its end, and look at it wherever it waits for that; return what it said."""
    said: list[str] = []
    info: Any = None
    serial, begin = -1, 0
    while info is None or info[0] not in _FINAL:
        news = client.call("WaitForJobChange", job, ["status"], info, serial, NEWS_S)
        if news == "nochange":
            continue
        if news is None:
            raise GntError(f"There is no job {job} any more.")
        info, entries = news
        for number, _, kind, message in entries or ():
            serial = max(serial, number)
            if kind == QUEUE_TEST:
                path, moment, count = message
                begin = len(said) if moment == START_MESSAGES else begin
                _look(client, job, path, moment)
                if moment == MESSAGE:
                    _hold_against(f"Job {job} said so many messages", len(said) - begin, count)
            elif kind == "message" and message.startswith(MESSAGE_PREFIX):
                said.append(message.removeprefix(MESSAGE_PREFIX))
    return said


def _look(client: Client, job: int, path: str, moment: str) -> None:
    """Look at a job while it waits for that; it goes on when the connection is closed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visit:
        visit.settimeout(PATIENCE_S)
        try:
            visit.connect(path)
        except OSError as error:
            raise GntError(f"Job {job} waits at {path}, and nobody can come: {error}.") from error
        ((status,),) = client.call("QueryJobs", [job], ["status"])
        right = "waiting" if moment == EXPAND_NAMES else "running"
        _hold_against(f"The status of job {job} at its “{moment}”", status, right)


def _hold_against(what: str, found: Any, right: Any) -> None:
    if found != right:
        raise GntError(f"{what}: {found!r}; it has to be {right!r}.")
