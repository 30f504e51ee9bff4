"""``gnt-cluster master-failover``: no coordinator can be asked to replace itself."""

import asyncio
from collections.abc import Sequence

from common.paths import Paths
from coordinator.cli import service
from coordinator.cli.confirm import NeedsConfirmation
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.refused import add_refused
from coordinator.cli.telling import tell


def take_over(command: str, words: Sequence[str]) -> int:
    """Make this node the master, and start its coordinator."""
    parser = Parser(command, "Make this node, a master candidate, the master of its cluster.")
    parser.add_argument(
        "--no-voting",
        action="store_true",
        help="without a quorum: you know that no other master runs",
    )
    parser.add_argument(
        "--local-is-right",
        action="store_true",
        help="with --no-voting: even if another's state is newer",
    )
    parser.add_argument("--yes-do-it", action="store_true", help="confirm --no-voting")
    add_json(parser)
    service.add_port(parser)
    add_refused(parser, command)
    options = parser.parse_args(words)
    if (options.no_voting or options.local_is_right) and not options.yes_do_it:
        raise NeedsConfirmation(
            "Without voting two nodes may be master at once, which destroys data. If you know "
            "that no other master runs, add --yes-do-it."
        )

    from coordinator.master import takeover
    from coordinator.quorum.question import Word

    word = Word.NO_VOTING if options.no_voting else Word.NONE
    if options.local_is_right:
        word = Word.LOCAL_IS_RIGHT
    taken = asyncio.run(takeover.take_over(Paths(), options.port, word))
    # The coordinator asks the nodes once more, and gets as few answers as we did.
    given = ("--no-voting", "--yes-do-it") if taken.overridden else ()
    service.start((*service.port_words(options.port), *given))
    silent = ", ".join(taken.unheard)
    tell(
        options,
        {name: getattr(taken, name) for name in taken.__struct_fields__},
        *(f"Set aside by your word: {text}" for text in taken.overridden),
        f"{taken.master} is the master now.",
        *([f"These nodes did not answer: {silent}."] if silent else []),
    )
    return 0
