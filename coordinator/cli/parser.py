"""Command lines: argparse, with our way of saying what is wrong, and the options all share."""

import argparse
import os
from typing import NoReturn

from common.errors import InvalidRequest


class Parser(argparse.ArgumentParser):
    """Complains in a sentence, by raising InvalidRequest."""

    def __init__(self, command: str, description: str) -> None:
        """Parse what follows ``command``, as "gnt-instance list"."""
        super().__init__(prog=command, description=description, formatter_class=_help)
        self.add_argument("-d", "--debug", action="count", default=0, help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise InvalidRequest(f"{message[:1].upper()}{message[1:]}; see “{self.prog} --help”.")


def _help(prog: str) -> argparse.HelpFormatter:
    """Write help as wide as the terminal; argparse would import shutil to find out."""
    try:
        width = os.get_terminal_size(1).columns
    except (OSError, ValueError):
        width = 80
    return argparse.HelpFormatter(prog, width=max(40, width - 2))


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


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
