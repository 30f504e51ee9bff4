"""Jobs are submitted and followed to their ends, and these are told."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from common.errors import Conflict, GntError, NoCapacity
from common.luxi.client import Client, ConnectionLost
from common.luxi.failures import from_ganeti
from coordinator.cli.follow import Ended, follow
from coordinator.cli.telling import in_words, print_failure, write
from coordinator.operations.registry import find_operation

Jobs = Sequence[list[dict[str, Any]]]
Submit = Callable[[Client, Jobs], list[int | GntError]]


def run_jobs(
    client: Client,
    jobs: Jobs,
    options: argparse.Namespace,
    labels: Sequence[str] = (),
    *,
    submit: Submit | None = None,
) -> int:
    """Submit jobs of one operation each and, unless told not to, follow them.

    Args:
        client: whom to ask.
        jobs: each a list of operations.
        options: of the command line.
        labels: whom each job is about; told before each line when there are several.
        submit: how; all at once, unless it is said.

    Returns:
        The exit code: that of the first one that failed.

    Raises:
        GntError: the only job was refused, or failed.
    """
    numbers = (submit or submit_together)(client, jobs)
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


def submit_together(client: Client, jobs: Jobs) -> list[int | GntError]:
    """Submit jobs, all or none of them; return the number of each, or why it was refused."""
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


def submit_each(client: Client, jobs: Jobs) -> list[int | GntError]:
    """Submit jobs one after the other; one that is refused keeps none of the others back."""
    return [_submit_alone(client, job) for job in jobs]


def _submit_alone(client: Client, job: list[dict[str, Any]]) -> int | GntError:
    try:
        return submit_together(client, [job])[0]
    except ConnectionLost:
        raise
    except GntError as error:
        return error


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
