"""``gnt-debug submit-job``: jobs from files of operations."""

from collections.abc import Sequence

from coordinator.cli.connection import connect
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.json_file import read_objects
from coordinator.cli.parser import Parser
from coordinator.cli.run_jobs import run_jobs

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
    add_job_options(parser)
    options = parser.parse_args(words)
    common = common_fields("gnt-debug", options)
    read = [read_objects(name, _OF, "OP_ID") for name in options.files]
    jobs = [
        [operation | common for operation in operations] * options.op_repeat
        for operations in read
        for _ in range(options.job_repeat)
    ]
    with connect() as client:
        return run_jobs(client, jobs, options)


def _repeats(text: str) -> int:
    if not 1 <= (number := int(text)) <= MOST_REPEATS:
        raise ValueError
    return number
