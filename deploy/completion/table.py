"""What can follow what on a command line."""

import argparse
from typing import NamedTuple

from coordinator.cli.commands import AREAS, UMBRELLA
from deploy.manpages.parsers import commands, parser_of, shown_actions

KINDS = {
    "INSTANCE": "instances",
    "NODE": "nodes",
    "JOB": "jobs",
    "FILE": "files",
    "FIELD": "fields",
}
"""Words of usages for what a shell can list: names of the cluster's objects, or files."""


APOSTROPHE = "\u2019"  # stands for the one that would end a quoted word
_BEFORE_NODES = frozenset({"--node", "--primary", "--secondary"})  # flags that nodes follow


class Option(NamedTuple):
    """``values`` are words to choose from, or one of the kinds as ``@nodes``; None: no value."""

    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None


class Line(NamedTuple):
    """One command; ``words`` are what its arguments can be, as the values of an option."""

    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


Table = dict[str, dict[str, Line]]


def programs() -> Table:
    """Return the commands of each program, other names of commands among them."""
    made: Table = {}
    for program in AREAS:
        lines = {name: _line(program, name) for name in commands(program)}
        aliases = AREAS[program].aliases
        made[program] = lines | {alias: lines[name] for alias, name in aliases.items()}
    made["gantry"] = {name: _line("gantry", name) for name in UMBRELLA}
    return made


def area_names() -> dict[str, str]:
    """Return what may follow ``gantry``, and the program that it stands for."""
    return {program.removeprefix("gnt-"): program for program in AREAS}


def _line(program: str, name: str) -> Line:
    parser = parser_of(program, name)
    options = [Option(("-h", "--help"), "show what there is to say", None)]
    words: tuple[str, ...] = ()
    for action in shown_actions(parser):
        if action.option_strings:
            values = None if action.nargs == 0 else _values(action)
            if action.nargs == 0 and _BEFORE_NODES.intersection(action.option_strings):
                values = ("@nodes",)
            flags = tuple(action.option_strings)
            options.append(Option(flags, " ".join((action.help or "").split()), values))
        elif not words:
            words = _values(action)
    return Line(commands(program)[name].help, tuple(options), words)


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if word in KINDS:
        return (f"@{KINDS[word]}",)
    choices = tuple(word.split("|"))
    return choices if len(choices) > 1 and all(each.islower() for each in choices) else ()
