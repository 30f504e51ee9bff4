"""Numbers of jobs on command lines."""

from collections.abc import Sequence

from common.errors import InvalidRequest
from coordinator.cli.parser import Parser, add_json

LONGEST_NUMBER = 15  # digits; no cluster counts so far in its life


def job_parser(command: str, description: str, *, count: int | str = 1) -> Parser:
    """Return a parser of a command that takes numbers of jobs: so many, or as argparse says."""
    parser = Parser(command, description)
    parser.add_argument("jobs", metavar="JOB", nargs=count, help="number of a job")
    add_json(parser)
    return parser


def read_numbers(words: Sequence[str]) -> list[int]:
    """Read numbers of jobs.

    Raises:
        InvalidRequest: a word is none.
    """
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER):
            raise InvalidRequest(f"“{word}” is no number of a job.")
    return [int(word) for word in words]
