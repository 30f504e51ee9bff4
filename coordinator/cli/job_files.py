"""``gnt-debug submit-job``: jobs from files of operations."""

import sys
import time
from collections.abc import Sequence

from common.errors import GntError
from common.luxi.client import Client
from coordinator.cli.connection import connect
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.json_file import read_objects
from coordinator.cli.parser import Parser
from coordinator.cli.run_jobs import Jobs, Submit, run_jobs, submit_each, submit_together

MOST_REPEATS = 10_000
_OF = "a JSON list of operations, objects with an OP_ID"


def submit_job(command: str, words: Sequence[str]) -> int:
    """Submit a job for each file and, unless told not to, follow them."""
    parser = Parser(
        command,
        "Submit the jobs in files. Each file is a JSON list of operations as the job queue knows "
        "them: objects with OP_ID and the parameters, as “gnt-job info” shows them.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="to read; - is standard input")
    for what, doc in (("op", "operations in a job"), ("job", "each job")):
        parser.add_argument(
            f"--{what}-repeat", type=_repeats, default=1, metavar="N", help=f"{doc}, N times"
        )
    parser.add_argument("--each", action="store_true", help="submit the jobs one by one")
    parser.add_argument("--timing-stats", action="store_true", help="tell how long it took")
    add_job_options(parser)
    options = parser.parse_args(words)
    common = common_fields("gnt-debug", options)
    read = [read_objects(name, _OF, "OP_ID") for name in options.files]
    jobs = [
        [operation | common for operation in operations] * options.op_repeat
        for operations in read
        for _ in range(options.job_repeat)
    ]
    watch = _Stopwatch(submit_each if options.each else submit_together)
    with connect() as client:
        try:
            return run_jobs(client, jobs, options, submit=watch.submit)
        finally:
            if options.timing_stats:
                operations = sum(len(job) for job in jobs)
                out = sys.stderr if options.json else sys.stdout
                print(*watch.told(operations, len(jobs)), sep="\n", file=out)


class _Stopwatch:
    """Submits jobs, and notes when that began and ended."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._began = self._submitted = time.monotonic()

    def submit(self, client: Client, jobs: Jobs) -> list[int | GntError]:
        self._began = time.monotonic()
        try:
            return self._submit(client, jobs)
        finally:
            self._submitted = time.monotonic()

    def told(self, operations: int, jobs: int) -> list[str]:
        """Return the counts, and the times until now, in seconds, as Ganeti writes them."""
        now = time.monotonic()
        return [
            f"C:op     {operations:4d}",
            f"C:job    {jobs:4d}",
            f"T:submit {self._submitted - self._began:4.4f}",
            f"T:exec   {now - self._submitted:4.4f}",
            f"T:total  {now - self._began:4.4f}",
        ]


def _repeats(text: str) -> int:
    if not 1 <= (number := int(text)) <= MOST_REPEATS:
        raise ValueError
    return number
