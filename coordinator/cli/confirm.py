"""Ask before what cannot be taken back."""

import sys

from common.errors import Conflict


class NeedsConfirmation(Conflict):
    """Nobody was there to ask, or the answer was no."""

    code = "conflict.needs-confirmation"
    exit_code = 13


def confirm(question: str) -> None:
    """Ask the operator.

    Raises:
        NeedsConfirmation: the answer is not yes, or there is no terminal.
    """
    if not sys.stdin.isatty():
        raise NeedsConfirmation(f"{question} Give --force to say yes where nobody can be asked.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NeedsConfirmation("Nothing was done.")
