"""Colour, where a person looks: on a terminal that has it, unless NO_COLOR says otherwise.

Source: https://no-color.org; ECMA-48 (SGR).
"""

import os
import re
from typing import TextIO

RED, GREEN, YELLOW, DIM = "31", "32", "33", "2"
SEQUENCE = re.compile(rf"(\x1b\[(?:{RED}|{GREEN}|{YELLOW}|{DIM}|0)m)")  # all that ``paint`` makes

_STATUS = {
    "running": GREEN, "success": GREEN, "up": GREEN,
    "queued": DIM, "waiting": YELLOW, "canceling": YELLOW, "canceled": DIM,
    "ADMIN_down": DIM, "ADMIN_offline": DIM, "error": RED, "paused": YELLOW,
}  # fmt: skip
_FINDING = re.compile(r"^(.*?  - (?:[A-Z0-9]+: )?)(ERROR|WARNING)(: .*)$", re.DOTALL)


def has_colour(stream: TextIO) -> bool:
    """Tell whether what is written to ``stream`` may be coloured."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Return ``text`` in a colour, if the stream has any."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and text and has_colour(stream) else text


def status_colour(status: str) -> str:
    """Return the colour of a status in a list; none for what is neither good nor bad."""
    return RED if status.startswith("ERROR_") else _STATUS.get(status, "")


def paint_finding(line: str, stream: TextIO) -> str:
    """Return a line of a job's log with the severity of what verify found in colour."""
    found = _FINDING.match(line)
    if found is None:
        return line
    before, severity, after = found.groups()
    return f"{before}{paint(severity, RED if severity == 'ERROR' else YELLOW, stream)}{after}"
