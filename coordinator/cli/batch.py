"""``gnt-instance batch-create``: many instances from one file."""

from collections.abc import Sequence
from typing import Any

from coordinator.cli.connection import connect
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.json_file import read_objects
from coordinator.cli.parser import Parser
from coordinator.cli.run_jobs import run_jobs

OF = "a JSON list of objects, one an instance"


def create_many(command: str, words: Sequence[str]) -> int:
    """Place all instances of a file in one go; each is then made by a job of its own."""
    parser = Parser(
        command,
        "Create the instances in a file: all are placed in one go, then each is made by a job of "
        "its own. The file is a JSON list; each element has the parameters of gnt-instance add "
        "as the job queue knows them: instance_name, disk_template, disks, nics, beparams, …",
    )
    parser.add_argument("file", metavar="FILE", help="to read them from; - is standard input")
    parser.add_argument(
        "-I", "--iallocator", metavar="NAME", help="have this allocator choose the nodes"
    )
    add_job_options(parser)
    options = parser.parse_args(words)
    wire: dict[str, Any] = {
        "OP_ID": "OP_INSTANCE_MULTI_ALLOC",
        "instances": read_objects(options.file, OF),
        **common_fields("gnt-instance", options),
    }
    if options.iallocator:
        wire["iallocator"] = options.iallocator
    with connect() as client:
        return run_jobs(client, [[wire]], options)
