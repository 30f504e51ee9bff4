"""The command line of ``hbal``."""

from common.errors import InvalidRequest
from coordinator.htools import source
from coordinator.htools.options import Option, Takes, number

_PRIORITIES = {"low": 10, "normal": 0, "high": -10}


def _priority(name: str) -> int:
    """Read the name of a priority as Ganeti's number: the lower, the sooner a job runs."""
    if name not in _PRIORITIES:
        raise InvalidRequest(f"Unknown priority '{name}'")
    return _PRIORITIES[name]


PRINT_INSTANCES = Option(
    key="print_instances", name="print-instances", default=False,
    help="show where every instance ends up, on standard error",
)  # fmt: skip

_REPORTING = (
    source.PRINT_NODES,
    PRINT_INSTANCES,
    Option(
        key="commands", name="print-commands", letter="C", argument="FILE", takes=Takes.PERHAPS,
        without="",
        help="list the commands that make the moves; with FILE, write them there as a script",
    ),
    source.SAVE,
    source.VERBOSE,
    source.QUIET,
)  # fmt: skip

_LIMITS = (
    Option(
        key="look_ahead", name="look-ahead", argument="N", takes=Takes.SOMETHING,
        completes="integer",
        read=number("look ahead", int, positive=True),
        help="when no move helps by itself, try N of them with one more after each [8]; "
        "0 looks one step ahead only",
    ),
    Option(
        key="strict", name="strict-compat", default=False,
        help="look one step ahead only: the moves of Ganeti's hbal, in its order",
    ),
    Option(
        key="evacuate", name="evac-mode", letter="E", default=False,
        help="only empty nodes that are offline or drained",
    ),
    Option(
        key="restricted", name="restricted-migration", default=False,
        help="never move a primary onto a new node; when emptying, migrate off drained nodes only",
    ),
    source.GROUP,
    Option(
        key="length", name="max-length", letter="l", argument="N", takes=Takes.SOMETHING,
        completes="integer",
        read=number("max solution length", int), default=-1,
        help="stop after N moves",
    ),
    source.OFFLINE,
    Option(
        key="min_score", name="min-score", letter="e", argument="EPSILON", takes=Takes.SOMETHING,
        completes="float",
        read=number("epsilon", float), default=1e-9,
        help="stop when the score is this close to the best possible one",
    ),
    source.MAX_CPU,
    source.MIN_DISK,
    Option(
        key="min_gain", name="min-gain", letter="g", argument="DELTA", takes=Takes.SOMETHING,
        completes="float",
        read=number("min gain", float), default=0.01,
        help="stop when a move gains less than this",
    ),
    Option(
        key="min_gain_limit", name="min-gain-limit", argument="SCORE", takes=Takes.SOMETHING,
        completes="float",
        read=number("min gain limit", float), default=0.1,
        help="heed --min-gain only once the score is below this",
    ),
    Option(
        key="disk_moves", name="no-disk-moves", default=True, without=False,
        help="move no disks: only migrate and fail over",
    ),
    Option(
        key="instance_moves", name="no-instance-moves", default=True, without=False,
        help="move no primaries: only replace secondaries",
    ),
    source.SELECT,
    source.EXCLUDE,
    source.EXCLUSION,
    Option(
        key="ignore_soft_errors", name="ignore-soft-errors", default=False,
        help="let moves break limits that may be broken",
    ),
)  # fmt: skip

_EXECUTION = (
    Option(
        key="execute", name="exec", letter="X", default=False,
        help="make the moves, as jobs; needs -L",
    ),
    Option(
        key="first_set", name="first-job-group", default=False,
        help="make only the first set of moves that can run side by side",
    ),
    Option(
        key="reason", name="reason", argument="REASON", takes=Takes.SOMETHING,
        help="why, for the trail of the jobs",
    ),
    Option(
        key="priority", name="priority", argument="PRIO", takes=Takes.SOMETHING,
        completes="choices=low,normal,high",
        read=_priority, help="of the jobs: low, normal or high",
    ),
)  # fmt: skip

OPTIONS = (
    source.TEXT,
    source.LUXI,
    source.RAPI,
    source.RAPI_AUTHORITY,
    source.REQUEST,
    source.STATIC_MEMORY,
    *_LIMITS,
    source.DYNU,
    source.IGNORE_DYNU,
    source.MOND,
    source.MOND_DATA,
    source.MOND_XEN,
    source.MOND_COMPLETE,
    *_REPORTING,
    *_EXECUTION,
)  # fmt: skip
