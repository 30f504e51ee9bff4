"""Command lines: argparse, with our way of saying what is wrong, and the options all share."""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from common.errors import InvalidRequest


class Parser(argparse.ArgumentParser):
    """Complains in a sentence, by raising InvalidRequest."""

    def __init__(self, command: str, description: str) -> None:
        """Parse what follows ``command``, as "gnt-instance list"."""
        super().__init__(prog=command, description=description, formatter_class=_help)
        flags = "-d", "--debug"
        self._debug = self.add_argument(*flags, action="count", default=0, help=argparse.SUPPRESS)

    def explain_debug(self, help: str) -> None:
        """Say what ``--debug`` is for; where nothing is said, it is taken and does nothing."""
        self._debug.help = help

    def parse_args(  # type: ignore[override]  # nobody has a namespace of his own
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """Read words; a value may begin with “-”, as in ``--net -1:remove`` and ``-O -NAME``."""
        words = self._with_their_values(sys.argv[1:] if args is None else args)
        return super().parse_args(list(words), namespace)

    def _with_their_values(self, words: Iterable[str]) -> Iterator[str]:
        """Write a value that would be taken for an option, and is none, to the one before it."""
        rest = iter(words)
        ends_early = any(each.nargs == argparse.REMAINDER for each in self._actions)
        for word in rest:
            option = self._option_string_actions.get(word)
            takes_one = option is not None and option.nargs is None
            value = next(rest, None) if takes_one else None
            if value is None:
                yield word
            elif re.match(r"-[^-]", value) and value not in self._option_string_actions:
                yield f"{word}={value}"
            else:
                yield from (word, value)
            # What follows may be words of another program, which has options of its own.
            if word == "--" or (ends_early and not word.startswith("-")):
                yield from rest

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            raise InvalidRequest(self._unknown(unknown.split()))
        raise InvalidRequest(f"{message[:1].upper()}{message[1:]}; see “{self.prog} --help”.")

    def _unknown(self, words: list[str]) -> str:
        """Name the option that is none, without the words after it, and what was meant perhaps."""
        from difflib import get_close_matches  # only now is it worth the import

        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not options:
            return f"“{' '.join(words)}” is too much; see “{self.prog} --help”."
        near = get_close_matches(options[0], self._option_string_actions, n=1)
        hint = f"did you mean “{near[0]}”?" if near else f"see “{self.prog} --help”."
        return f"There is no option “{options[0]}”; {hint}"


def _help(prog: str) -> argparse.HelpFormatter:
    """Write help as wide as the terminal; argparse would import shutil to find out."""
    try:
        width = os.get_terminal_size(1).columns
    except (OSError, ValueError):
        width = 80
    return argparse.HelpFormatter(prog, width=max(40, width - 2))


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--yaml``: ``options.json`` is then the name of one, or nothing."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--json", action="store_const", const="json", default="", help="print JSON, for programs"
    )
    forms.add_argument(
        "--yaml", dest="json", action="store_const", const="yaml", help="print the same as YAML"
    )


def add_ignored(parser: argparse.ArgumentParser, flags: Iterable[str]) -> None:
    """Take options of Ganeti's that ask for nothing here."""
    for flag in flags:
        parser.add_argument(flag, dest="ignored", action="store_true", help=argparse.SUPPRESS)


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Add what all commands that print tables understand."""
    parser.add_argument("--no-headers", action="store_true", help="leave out the titles")
    parser.add_argument("--separator", metavar="TEXT", help="between columns; they are not padded")
    add_json(parser)


def add_list_options(parser: argparse.ArgumentParser) -> None:
    """Add what all list commands understand."""
    add_table_options(parser)
    parser.add_argument(
        "--units", choices=("h", "m", "g", "t"), help="of sizes; h (the default) picks what fits"
    )
    parser.add_argument(
        "-o", "--output", metavar="[+]FIELDS", help="fields, with commas; + adds to the usual ones"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say why a value is missing")
    parser.add_argument(
        "-F", "--filter", action="store_true", help="the argument is a filter, not a name"
    )
