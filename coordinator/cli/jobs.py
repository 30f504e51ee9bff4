"""``gnt-job``: info, watch, wait, why and autoarchive."""

import sys
from collections.abc import Sequence
from typing import Any

from common.durations import parse_duration
from common.luxi.failures import JobLost
from coordinator.cli.cell import format_moment
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow, format_log, waits_for
from coordinator.cli.job_numbers import job_parser, read_numbers
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell, write
from coordinator.cli.tree import tree

PART_S = 10.0  # one call's share of a long archiving
_FIELDS = ("id", "status", "received_ts", "start_ts", "end_ts", "archived", "ops", "opstatus",
           "opresult", "opfailure", "oplog", "opstart", "opexec", "opend", "oppriority",
           "summary", "waits")  # fmt: skip


def info(command: str, words: Sequence[str]) -> int:
    """``gnt-job info``: everything about some jobs."""
    parser = job_parser(command, "Show all about jobs.", count="+")
    options = parser.parse_args(words)
    numbers = read_numbers(options.jobs)
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
    parser = job_parser(command, "Show what a job says, until it has ended.")
    parser.add_argument("-v", "--verbose", action="store_true", help="show details, too")
    return _follow(parser, words, loud=True)


def wait(command: str, words: Sequence[str]) -> int:
    """``gnt-job wait``: silent until a job has ended."""
    return _follow(job_parser(command, "Wait until a job has ended."), words, loud=False)


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


def why(command: str, words: Sequence[str]) -> int:
    """``gnt-job why``: what jobs wait for, who has it, and since when."""
    parser = job_parser(command, "Tell what jobs wait for, and who has it.", count="+")
    options = parser.parse_args(words)
    with connect() as client:
        for number in read_numbers(options.jobs):
            status, reasons = client.call("WhyJob", number)
            waits = [{"for": what, "seconds": for_s} for what, for_s in reasons]
            nothing = f"Job {number} waits for nothing; its status is {status}."
            sentences = [waits_for(number, *reason) for reason in reasons] or [nothing]
            tell(options, {"id": number, "status": status, "waits": waits}, *sentences)
    return 0


def _follow(parser: Parser, words: Sequence[str], *, loud: bool) -> int:
    options = parser.parse_args(words)
    (number,) = read_numbers(options.jobs)
    with connect() as client:
        # With --json, standard output is the program's.
        out = (sys.stderr if options.json else sys.stdout) if loud else None
        details = getattr(options, "verbose", False)
        end = follow(client, number, out=out, details=details)
    tell(options, end.to_json())
    if end.failure:
        raise end.failure
    return 0


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
            "Input fields": {
                name: value
                for name, value in job["ops"][index].items()
                if name != "OP_ID" and (name != "depends" or value)
            },
            "Result": job["opresult"][index] if failure is None else failure["message"],
            "Execution log": [format_log(entry) for entry in job["oplog"][index]],
        }
    }
    return told
