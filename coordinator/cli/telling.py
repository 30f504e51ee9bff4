"""The end of a command: a sentence for people or, with ``--json``, an object for programs."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from common.errors import GntError
from coordinator.cli.colour import RED, paint

MOST_NAMED = 10


def in_words(names: Sequence[str]) -> str:
    """Return ``web1, web2 and web3``, or the first ten and how many there are besides."""
    shown = list(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} others")
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def counted(number: int, what: str) -> str:
    """Return ``1 node`` or ``2 nodes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def no_json(error: ValueError | RecursionError) -> str:
    """Say where a text stops to be JSON; ``error`` is what ``json`` makes of it."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON from line {error.lineno}, column {error.colno} on"
    return "it is no JSON"


def write(form: str, value: Any, *, indent: int | None = None) -> None:
    """Print a value for programs, as ``json`` or ``yaml``."""
    if form == "yaml":
        from coordinator.cli.yaml import to_yaml

        print(to_yaml(value), end="")
    else:
        print(json.dumps(value, indent=indent, ensure_ascii=False))


def print_failure(error: GntError) -> None:
    """Say on standard error what went wrong."""
    print(f"{paint('Failure:', RED, sys.stderr)} {error.message}", file=sys.stderr)


def tell(options: argparse.Namespace, told: Any, *sentences: str) -> None:
    """Print what came of a command.

    Args:
        options: of its command line; ``json`` decides.
        told: for programs.
        sentences: for people, one a line.
    """
    if options.json:
        write(options.json, told)
    else:
        for sentence in sentences:
            print(sentence)
