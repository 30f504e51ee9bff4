"""``gnt-job``: info, watch, wait, why, cancel, change-priority, archive, autoarchive."""

import sys
from collections.abc import Sequence
from typing import Any

from common.durations import parse_duration
from common.errors import GntError, InvalidRequest
from common.luxi.failures import JobLost
from coordinator.cli.cell import format_moment
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow, format_log, waits_for
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.priority import read_priority
from coordinator.cli.telling import print_failure, tell, write
from coordinator.cli.tree import tree

LONGEST_NUMBER = 15  # digits; no cluster counts so far in its life
PART_S = 10.0  # one call's share of a long archiving
_FIELDS = ("id", "status", "received_ts", "start_ts", "end_ts", "archived", "ops", "opstatus",
           "opresult", "opfailure", "oplog", "opstart", "opexec", "opend", "oppriority",
           "summary", "waits")  # fmt: skip


def info(command: str, words: Sequence[str]) -> int:
    """``gnt-job info``: everything about some jobs."""
    parser = _parser(command, "Show all about jobs.", many=True)
    options = parser.parse_args(words)
    numbers = _numbers(options.jobs)
    with connect() as client:
        rows = client.call("QueryJobs", numbers, _FIELDS)
    missing = [number for number, row in zip(numbers, rows, strict=True) if row is None]
    jobs = [dict(zip(_FIELDS, row, strict=True)) for row in rows if row is not None]
    if options.json:
        write(options.json, jobs, indent=2)
    else:
        for job in jobs:
            print("\n".join(tree(_describe(job))))
    if missing:
        raise JobLost(f"There is no job {', '.join(map(str, missing))}.")
    return 0


def watch(command: str, words: Sequence[str]) -> int:
    """``gnt-job watch``: show what a job says until it has ended."""
    parser = _parser(command, "Show what a job says, until it has ended.")
    parser.add_argument("-v", "--verbose", action="store_true", help="show details, too")
    return _follow(parser, words, loud=True)


def wait(command: str, words: Sequence[str]) -> int:
    """``gnt-job wait``: silent until a job has ended."""
    return _follow(_parser(command, "Wait until a job has ended."), words, loud=False)


def cancel(command: str, words: Sequence[str]) -> int:
    """``gnt-job cancel``."""
    parser = _parser(command, "Cancel jobs; one that runs is undone.", many=True)
    return _for_each(parser, words, "CancelJob")


def archive(command: str, words: Sequence[str]) -> int:
    """``gnt-job archive``."""
    parser = _parser(command, "Put jobs that have ended out of sight.", many=True)
    return _for_each(parser, words, "ArchiveJob")


def autoarchive(command: str, words: Sequence[str]) -> int:
    """``gnt-job autoarchive``: in parts, until nothing is left to do."""
    parser = Parser(command, "Put jobs out of sight that ended long ago; delete old archived ones.")
    parser.add_argument(
        "age", metavar="AGE", help="since when they have ended, as in 6h; “all”: however long"
    )
    add_json(parser)
    options = parser.parse_args(words)
    age_s = -1.0 if options.age == "all" else parse_duration(options.age)
    archived = 0
    with connect() as client:
        done, left = client.call("AutoArchiveJobs", age_s, PART_S)
        while done:
            archived += done
            done, left = client.call("AutoArchiveJobs", age_s, PART_S)
    told = {"archived": archived, "left": left}
    tell(options, told, f"Archived {archived} jobs, {left} are left in sight.")
    return 0


def change_priority(command: str, words: Sequence[str]) -> int:
    """``gnt-job change-priority``."""
    parser = _parser(command, "Have jobs that wait go earlier or later.", many=True)
    parser.add_argument(
        "--priority",
        required=True,
        metavar="low|normal|high",
        help="or a number, -20 being the most urgent",
    )
    return _for_each(parser, words, "ChangeJobPriority")


def why(command: str, words: Sequence[str]) -> int:
    """``gnt-job why``: what jobs wait for, who has it, and since when."""
    parser = _parser(command, "Tell what jobs wait for, and who has it.", many=True)
    options = parser.parse_args(words)
    with connect() as client:
        for number in _numbers(options.jobs):
            status, reasons = client.call("WhyJob", number)
            waits = [{"for": what, "seconds": for_s} for what, for_s in reasons]
            nothing = f"Job {number} waits for nothing; its status is {status}."
            sentences = [waits_for(number, *reason) for reason in reasons] or [nothing]
            tell(options, {"id": number, "status": status, "waits": waits}, *sentences)
    return 0


def _follow(parser: Parser, words: Sequence[str], *, loud: bool) -> int:
    options = parser.parse_args(words)
    (number,) = _numbers(options.jobs)
    with connect() as client:
        # With --json, standard output is the program's.
        out = (sys.stderr if options.json else sys.stdout) if loud else None
        details = getattr(options, "verbose", False)
        end = follow(client, number, out=out, details=details)
    tell(options, end.to_json())
    if end.failure:
        raise end.failure
    return 0


def _for_each(parser: Parser, words: Sequence[str], method: str) -> int:
    options = parser.parse_args(words)
    # What the method takes besides the number of a job.
    further = (read_priority(options.priority),) if method == "ChangeJobPriority" else ()
    failures: list[GntError] = []
    with connect() as client:
        for number in _numbers(options.jobs):
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


def _parser(command: str, description: str, *, many: bool = False) -> Parser:
    parser = Parser(command, description)
    parser.add_argument("jobs", metavar="JOB", nargs="+" if many else 1, help="number of a job")
    add_json(parser)
    return parser


def _numbers(words: Sequence[str]) -> list[int]:
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER):
            raise InvalidRequest(f"“{word}” is no number of a job.")
    return [int(word) for word in words]


def _describe(job: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "Job ID": job["id"],
        "Status": job["status"] + (" (archived)" if job["archived"] else ""),
        **({"Waits for": job["waits"]} if job["waits"] else {}),
        "Received": format_moment(job["received_ts"]),
        "Processing start": format_moment(job["start_ts"]),
        "Processing end": format_moment(job["end_ts"]),
    }
    return told | {"Opcodes": [_operation(job, index) for index in range(len(job["ops"]))]}


def _operation(job: dict[str, Any], index: int) -> dict[str, Any]:
    failure = job["opfailure"][index]
    told: dict[str, Any] = {
        job["summary"][index]: {
            "Status": job["opstatus"][index],
            "Waiting since": format_moment(job["opstart"][index]),
            "Running since": format_moment(job["opexec"][index]),
            "Ended": format_moment(job["opend"][index]),
            "Priority": job["oppriority"][index],
            "Input fields": {k: v for k, v in job["ops"][index].items() if k != "OP_ID"},
            "Result": job["opresult"][index] if failure is None else failure["message"],
            "Execution log": [format_log(entry) for entry in job["oplog"][index]],
        }
    }
    return told
