"""Which parser each command has, without running the command."""

import argparse
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NoReturn
from unittest.mock import patch

import coordinator.confd.main
import coordinator.daemon.main
import coordinator.rapi.main
import coordinator.watcher.main
import noded.daemon.main
import noded.monitor.main
from coordinator.cli.commands import AREAS, UMBRELLA, Command
from coordinator.cli.parser import Parser
from coordinator.cli.submit import parser_for
from coordinator.operations.catalogue import Entry
from coordinator.operations.registry import find_operation


class _Made(Exception):
    """Carries a parser out of the command that made it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def commands(program: str) -> Mapping[str, Command | Entry]:
    """Return the commands of a program, by their names."""
    return UMBRELLA if program == "gantry" else AREAS[program].commands


def parser_of(program: str, name: str) -> argparse.ArgumentParser:
    """Return the parser of ``program name``.

    A command that is a function makes its parser first and uses it at once, which is where it
    is stopped.
    """
    command = commands(program)[name]
    if isinstance(command, Entry):
        return parser_for(f"{program} {name}", find_operation(command.opcode), command)
    file, _, function = command.run.partition(":")
    run = getattr(import_module(f"coordinator.cli.{file}"), function)

    def stop(self: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Made(self)

    try:
        with patch.object(Parser, "parse_args", stop):
            run(f"{program} {name}", ())
    except _Made as made:
        return made.parser
    raise AssertionError(f"{program} {name} has no parser")


def daemons() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the programs that have no commands."""
    return {
        "gantry-monitor": noded.monitor.main._parser(),  # noqa: SLF001
        "gantry-noded": noded.daemon.main._parser(),  # noqa: SLF001 -- it has no other reader
        "gantry-coordinator": coordinator.daemon.main._parser(),  # noqa: SLF001
        "gantry-confd": coordinator.confd.main._parser(),  # noqa: SLF001
        "gantry-rapi": coordinator.rapi.main._parser(),  # noqa: SLF001
        "gantry-watcher": coordinator.watcher.main._parser(),  # noqa: SLF001
    }


def shown_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments and options that operators are told of."""
    for action in parser._actions:  # noqa: SLF001 -- argparse has no public list of them
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):  # noqa: SLF001
            yield action
