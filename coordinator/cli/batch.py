"""``gnt-instance batch-create``: many instances from one file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser
from coordinator.cli.submit import add_job_options, common_fields, run_jobs

LARGEST_BYTES = 16 << 20


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
        "instances": read_instances(options.file),
        **common_fields("gnt-instance", options),
    }
    if options.iallocator:
        wire["iallocator"] = options.iallocator
    with connect() as client:
        return run_jobs(client, [[wire]], options)


def read_instances(name: str) -> list[dict[str, Any]]:
    """Read the list of instances.

    Raises:
        InvalidRequest: the file cannot be read, or is no list of objects.
    """
    what, path = f"The file “{name}”", Path(name)
    if name == "-":
        what, path = "Standard input", Path("/dev/stdin")
    try:
        with path.open(encoding="utf-8") as file:
            told = json.loads(file.read(LARGEST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidRequest(f"{what} cannot be read: {why}.") from error
    if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
        raise InvalidRequest(f"{what} is no JSON list of objects, one an instance.")
    return told
