"""A program of Ganeti's tools: what it tells of itself, how it begins and how it ends."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout

from common.errors import GntError, InvalidRequest
from common.printable import harmless
from common.version import VERSION
from coordinator.htools.catalogue import COMMON
from coordinator.htools.options import Usage, parse
from coordinator.htools.output import say, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn, TextIO

    from coordinator.htools.options import Option, Parsed

_ARGUMENTS = {"hail": "file 1 1", "hscan": "host 0 none"}
"""What follows the options, for completion: its kind, how many at least, how many at most."""


def spelled(
    option: Option, name: Callable[[str], str] = str, value: Callable[[str], str] = str
) -> tuple[str, str]:
    """How an option is given by its letter, empty if it has none, and by its name.

    ``name`` marks names, ``value`` what stands for the argument, for a page of the manual.
    """
    short, long = name(f"-{option.letter}") if option.letter else "", name(f"--{option.name}")
    if option.argument is None:
        return short, long
    shown = value(option.argument.shown)
    if option.argument.is_optional:
        return short and f"{short}[{shown}]", f"{long}[={shown}]"
    return short and f"{short} {shown}", f"{long}={shown}"


def help_text(program: str, options: Sequence[Option]) -> str:
    """Options in three columns, as Ganeti's tools show them."""
    rows = [(*spelled(option), option.help) for option in options]
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    lines = [f"  {a:<{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows]
    return "\n".join((f"{version_line(program)}", f"Usage: {program} [OPTION...]", *lines))


def completion_text(program: str, options: Sequence[Option]) -> str:
    """A line an option, its names and what its argument is; then one for what follows them."""
    lines = []
    for option in options:
        names = f"-{option.letter},--{option.name}" if option.letter else f"--{option.name}"
        lines.append(f"{names} {option.argument.completes if option.argument else 'none'}")
    if program in _ARGUMENTS:
        lines.append(_ARGUMENTS[program])
    return "\n".join(lines)


def version_line(program: str) -> str:
    return f"{program} (gantry) version {VERSION}"


def run(
    program: str,
    options: Sequence[Option],
    work: Callable[[Parsed], int],
    words: Sequence[str] | None = None,
) -> NoReturn:
    """Read the command line, do the work, and exit as Ganeti's tools do."""
    sys.exit(status_of(program, options, work, sys.argv[1:] if words is None else words))


def status_of(
    program: str,
    options: Sequence[Option],
    work: Callable[[Parsed], int],
    words: Sequence[str],
    streams: tuple[TextIO, TextIO] | None = None,
) -> int:
    """Read the command line and do the work; returns the exit status.

    Names in files and reports are other people's words: no terminal gets to obey them.

    The common options come beside those of the program. ``streams`` are standard output and error;
    None for those of the process.
    """
    stdout, stderr = streams or (sys.stdout, sys.stderr)
    try:
        with redirect_stdout(harmless(stdout)), redirect_stderr(harmless(stderr)):
            status = _status_of(program, (*options, *COMMON), work, words)
        stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # else whoever read it has read enough
            stderr.write(f"Error: cannot write the output: {error.strerror}\n")
        # What is left to write cannot be written at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        return 1
    return status


def _status_of(
    program: str, options: Sequence[Option], work: Callable[[Parsed], int], words: Sequence[str]
) -> int:
    try:
        parsed = parse(options, words)
    except Usage as error:
        tell(f"Command line error: {error}\n\n{help_text(program, options)}")
        return 2
    except InvalidRequest as error:
        tell(f"Error while parsing command line arguments:\n{error}")
        return 1
    if parsed.help:
        say(help_text(program, options))
    elif parsed.help_completion:
        say(completion_text(program, options))
    elif parsed.version:
        say(version_line(program))
    else:
        return _worked(program, work, parsed)
    return 0


def _worked(program: str, work: Callable[[Parsed], int], parsed: Parsed) -> int:
    try:
        if parsed.arguments and program not in _ARGUMENTS:
            raise InvalidRequest("This program doesn't take any arguments.")
        return work(parsed)
    except GntError as error:
        tell(f"Error: {error}")
        return 1
    except (OverflowError, MemoryError):
        tell("Error: the cluster has a number or a size too large to reckon with.")
        return 1
    except KeyboardInterrupt:
        tell("Interrupted.")
        return 130
