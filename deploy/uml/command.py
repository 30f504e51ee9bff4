"""Run the programs that the lab is made with; say in a sentence what went wrong."""

import os
import signal
import subprocess
from collections.abc import Sequence

TAIL = 8  # lines of a failed program's last words
GRACE_S = 2.0  # for an interrupted program to clear up

# Before a command that takes minutes: it ends when we do, even by kill -9, with all it started.
LEASH = ("setpriv", "--pdeathsig", "KILL", "--",
         "unshare", "--pid", "--mount-proc", "--fork", "--kill-child", "--")  # fmt: skip


class Trouble(Exception):
    """The lab cannot do what was asked; the message says why, and what to do."""


def run(words: Sequence[str], *, stdin: str = "", timeout_s: float = 60.0) -> str:
    """Run a program to its end and return what it printed.

    Raises:
        Trouble: it failed, is not there, or took too long.
    """
    line = " ".join(words)
    process = begin(words)
    try:
        out, err = process.communicate(stdin, timeout_s)
    except subprocess.TimeoutExpired as error:
        raise Trouble(f"“{line}” did not end within {timeout_s:g} s.") from error
    finally:
        end(process)
    if process.returncode != 0:
        said = "\n".join((err.strip() or out.strip()).splitlines()[-TAIL:])
        raise Trouble(f"“{line}” ended with {process.returncode}: {said}")
    return out


def begin(words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a program in a session of its own: Ctrl-C is for us, who then ``end`` it.

    Raises:
        Trouble: there is no such program.
    """
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise Trouble(f"“{words[0]}” is not installed; deploy/lab up installs it.") from error


def end(process: subprocess.Popen[str]) -> None:
    """Be done with a program: end it, and what it started, unless it has ended."""
    with process:
        if process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
