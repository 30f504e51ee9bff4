"""``gnt-cluster watcher``: have it pause during maintenance, go on, or tell."""

import time
from collections.abc import Sequence

from common.durations import parse_duration
from common.errors import InvalidRequest
from coordinator.cli.cell import format_time
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell


def watcher(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster watcher``."""
    parser = Parser(
        command,
        "Have the watcher, which starts instances that should run and do not, pause for some time, "
        "go on, or tell.",
    )
    parser.add_argument(
        "action",
        choices=("pause", "continue", "info"),
        help="let it do nothing for a while, let it work, or tell",
    )
    parser.add_argument("duration", nargs="?", help="of the pause, as 30m, 1h or 2d")
    add_json(parser)
    options = parser.parse_args(words)
    if (options.action == "pause") != (options.duration is not None):
        raise InvalidRequest(
            "“pause” needs to know for how long, as in “pause 1h”."
            if options.action == "pause"
            else f"“{options.action}” takes no duration."
        )
    now = time.time()
    until = now + parse_duration(options.duration) if options.duration else None
    with connect() as client:
        if options.action == "info":
            (until,) = client.call("QueryConfigValues", ["watcher_pause"])
        else:
            until = client.call("SetWatcherPause", until)
    pauses = until is not None and until > now
    text = f"The watcher pauses until {format_time(until)}." if pauses else "The watcher works."
    tell(options, {"paused_until": until if pauses else None}, text)
    return 0
