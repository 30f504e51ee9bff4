"""The options of all commands that submit jobs, and what they add to each opcode."""

import argparse
import time
from typing import Any

from coordinator.cli.parser import Parser, add_json
from coordinator.cli.priority import read_priority


def add_job_options(parser: Parser, *, verbose: bool = True) -> None:
    """Add what all commands that submit jobs understand, ``-v`` if they have none of their own."""
    parser.explain_debug("have scripts that it runs say more (DEBUG_LEVEL); may be given again")
    group = parser.add_argument_group("options of all jobs")
    if verbose:
        group.add_argument("-v", "--verbose", action="store_true", help="show details, too")
    group.add_argument("--submit", action="store_true", help="do not wait for the job's end")
    group.add_argument("--print-jobid", action="store_true", help="print the job's number first")
    group.add_argument("--dry-run", action="store_true", help="check, and print what would be done")
    group.add_argument("--priority", default="normal", metavar="low|normal|high", help="of the job")
    group.add_argument("--reason", metavar="TEXT", help="why, for whoever reads the job later")
    add_json(parser)


def common_fields(program: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of all jobs add to each opcode.

    Raises:
        InvalidRequest: the priority is none.
    """
    wire: dict[str, Any] = {}
    if options.dry_run:
        wire["dry_run"] = True
    if options.priority != "normal":
        wire["priority"] = read_priority(options.priority)
    if options.debug:
        wire["debug_level"] = options.debug
    if options.reason:
        wire["reason"] = [[f"gnt:client:{program}", options.reason, time.time_ns()]]
    return wire
