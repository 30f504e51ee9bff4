"""Run the programs that the lab is made with; say in a sentence what went wrong."""

import subprocess
from collections.abc import Sequence

TAIL = 8  # lines of a failed program's last words


class Trouble(Exception):
    """The lab cannot do what was asked; the message says why, and what to do."""


def run(words: Sequence[str], *, stdin: str = "", timeout_s: float = 60.0) -> str:
    """Run a program to its end and return what it printed.

    Raises:
        Trouble: it failed, is not there, or took too long.
    """
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except FileNotFoundError as error:
        raise Trouble(f"“{words[0]}” is not installed; deploy/lab up installs it.") from error
    except subprocess.TimeoutExpired as error:
        raise Trouble(f"“{' '.join(words)}” did not end within {timeout_s:g} s.") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-TAIL:])
        raise Trouble(f"“{' '.join(words)}” ended with {done.returncode}: {said}")
    return done.stdout
