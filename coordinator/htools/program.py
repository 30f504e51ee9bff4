"""A program of Ganeti's tools: what it tells of itself, how it begins and how it ends."""

from __future__ import annotations

import os
import sys

from common.errors import GntError, InvalidRequest
from common.printable import harmless
from common.version import VERSION
from coordinator.htools.options import Option, Takes, Usage, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from coordinator.htools.options import Parsed

_ARGUMENTS = {"hail": "file 1 1", "hscan": "host 0 none"}
"""What follows the options, for completion: its kind, how many at least, how many at most."""


def help_text(program: str, options: Sequence[Option]) -> str:
    """Options in three columns, as Ganeti's tools show them."""
    rows = []
    for option in options:
        argument = option.argument
        match option.takes:
            case Takes.NOTHING:
                short, long = f"-{option.letter}", f"--{option.name}"
            case Takes.SOMETHING:
                short, long = f"-{option.letter} {argument}", f"--{option.name}={argument}"
            case _:
                short, long = f"-{option.letter}[{argument}]", f"--{option.name}[={argument}]"
        rows.append((short if option.letter else "", long, option.help))
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    lines = [f"  {a:<{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows]
    return "\n".join((f"{version_line(program)}", f"Usage: {program} [OPTION...]", *lines))


def completion_text(program: str, options: Sequence[Option]) -> str:
    """A line an option, its names and what its argument is; then one for what follows them."""
    lines = []
    for option in options:
        names = f"-{option.letter},--{option.name}" if option.letter else f"--{option.name}"
        lines.append(f"{names} {option.completes}")
    if program in _ARGUMENTS:
        lines.append(_ARGUMENTS[program])
    return "\n".join(lines)


def version_line(program: str) -> str:
    return f"{program} (gantry) version {VERSION}"


def own_text(program: str, options: Sequence[Option], parsed: Parsed) -> str:
    """What a command tells of itself instead of doing anything; empty if that was not asked."""
    if parsed.help:
        return help_text(program, options)
    if parsed.completion:
        return completion_text(program, options)
    return version_line(program) if parsed.version else ""


def run(
    program: str,
    options: Sequence[Option],
    work: Callable[[Parsed], int],
    words: Sequence[str] | None = None,
    *,
    takes_arguments: bool = False,
) -> NoReturn:
    """Read the command line, do the work, and exit as Ganeti's tools do.

    Names in files and reports are other people's words: no terminal gets to obey them.
    """
    from contextlib import redirect_stderr, redirect_stdout  # hail, in a hurry, does not run here

    given = sys.argv[1:] if words is None else words
    try:
        with redirect_stdout(harmless(sys.stdout)), redirect_stderr(harmless(sys.stderr)):
            status = _run(program, options, work, given, takes_arguments=takes_arguments)
        sys.stdout.flush()
    except OSError as error:
        status = 1
        if not isinstance(error, BrokenPipeError):  # else whoever read it has read enough
            sys.stderr.write(f"Error: cannot write the output: {error.strerror}\n")
        # What is left to write cannot be written at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _run(
    program: str,
    options: Sequence[Option],
    work: Callable[[Parsed], int],
    words: Sequence[str],
    *,
    takes_arguments: bool,
) -> int:
    try:
        parsed = parse((*options, *COMMON), words)
    except Usage as error:
        sys.stderr.write(f"Command line error: {error}\n\n")
        sys.stderr.write(f"{help_text(program, (*options, *COMMON))}\n")
        return 2
    except InvalidRequest as error:
        sys.stderr.write(f"Error while parsing command line arguments:\n{error}\n")
        return 1
    wanted = own_text(program, (*options, *COMMON), parsed)
    if wanted:
        sys.stdout.write(f"{wanted}\n")
        return 0
    try:
        if parsed.arguments and not takes_arguments:
            raise InvalidRequest("This program doesn't take any arguments.")
        return work(parsed)
    except GntError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except (OverflowError, MemoryError):
        sys.stderr.write("Error: the cluster has a number or a size too large to reckon with.\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


COMMON = (
    Option(key="version", name="version", letter="V", help="show the version of the program"),
    Option(key="help", name="help", letter="h", help="show help"),
    Option(
        key="completion", name="help-completion", help="tell shells how to complete the options"
    ),
)
