"""Secrets that a command needs: from a file or another machine, never from its words.

What stands among a command's words can be read by every user of the machine.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Self, TextIO

from common.errors import InvalidRequest, NodeFailure
from coordinator.operations.parameter import Parameter

LONGEST, LARGEST = 10_000, 100_000  # of a line, of a file
COULD_NOT_CONNECT = 255  # ssh's own failures, ssh(1)


class OverSsh(str):
    """Where ssh shall go for a secret: HOST, or USER@HOST."""

    __slots__ = ()

    def __new__(cls, word: str) -> Self:
        if not word.rpartition("@")[2] or word.startswith("-"):
            raise argparse.ArgumentTypeError(f"“{word}” is no host; write HOST or USER@HOST")
        return super().__new__(cls, word)


def add_ways(parser: argparse.ArgumentParser, name: str, parameter: Parameter) -> None:
    """Add the two options, of which one has to be given, that tell where a join token is."""
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument(
        *parameter.flags, dest=name, metavar="FILE", default=argparse.SUPPRESS, help=parameter.help
    )
    ways.add_argument(
        "--ssh",
        dest=name,
        metavar="[USER@]HOST",
        default=argparse.SUPPRESS,
        type=OverSsh,
        help="have ssh run “gantry join-token” there",
    )


def read_secret(word: str) -> str:
    """Return the first line of a file, of standard input (``-``), or what ssh brings.

    Raises:
        InvalidRequest: the file cannot be read, or is empty.
        NodeFailure: ssh does not get there, or the other machine has no token.
    """
    if isinstance(word, OverSsh):
        return _over_ssh(word)
    return _read(word, lambda file: file.readline(LONGEST))


def read_whole(word: str) -> str:
    """Return all of a file, or of standard input (``-``).

    Raises:
        InvalidRequest: the file cannot be read, is empty, or too large for a secret.
    """
    text = _read(word, lambda file: file.read(LARGEST + 1))
    if len(text) > LARGEST:
        raise InvalidRequest(f"The file “{word}” is larger than {LARGEST} bytes.")
    return text


def _read(word: str, read: Callable[[TextIO], str]) -> str:
    path = Path("/dev/stdin" if word == "-" else word)
    try:
        with path.open(encoding="utf-8") as file:
            text = read(file).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidRequest(f"The file “{word}” cannot be read: {why}.") from error
    if not text:
        raise InvalidRequest(f"The file “{word}” is empty.")
    return text


def _over_ssh(host: str) -> str:
    """Run ``gantry join-token`` on another machine, with the operator's own ssh.

    Keys, host keys and questions are ssh's affair; it speaks to the terminal itself.
    """
    import subprocess

    command = ["ssh", "-T", "--", host, "gantry join-token"]
    try:
        done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
        )
    except FileNotFoundError as error:
        raise NodeFailure("This machine has no ssh; give --token-file instead.") from error
    if done.returncode == COULD_NOT_CONNECT:
        raise NodeFailure(f"ssh could not get to {host}; what it says about it is above.")
    lines = done.stdout[-LONGEST:].decode(errors="replace").split()
    if done.returncode != 0 or not lines:
        raise NodeFailure(
            f"“gantry join-token” failed on {host} with {done.returncode}; what it said is above. "
            "It has to be done as root, where Gantry is installed."
        )
    return lines[-1]  # a shell over there may have had something to say first
