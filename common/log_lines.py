"""How a line of a daemon's log is written: for people, or as JSON for programs that ask for it.

Nobody can forge a line: what comes from outside is escaped, once and here.
"""

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from common.printable import one_line, printable

FORMAT: Final = "GANTRY_LOG_FORMAT"  # of the environment, for all daemons alike
_FORMATS: Final = ("text", "json")

log = logging.getLogger(__name__)


class LineFormatter(logging.Formatter):
    """Writes each message as one line; a traceback has several, which are ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        return printable(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """Writes each record as one object on one line, its traceback within it."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": self._program,
            "pid": record.process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        # Escapes are those of JSON, so that readers get the text as it was.
        return one_line(json.dumps(told, ensure_ascii=False))


def formatter(
    program: str, form: str, environment: Mapping[str, str] = os.environ
) -> logging.Formatter:
    """Return what writes the lines of a daemon, as its environment asks.

    Args:
        program: whose log it is.
        form: of a line for people; see ``logging.Formatter``.
        environment: of the daemon.
    """
    return JsonFormatter(program) if environment.get(FORMAT) == "json" else LineFormatter(form)


def message_of(line: str) -> str:
    """Return what a line says: the message of an object, or the line as it is."""
    try:
        told = json.loads(line)
    except ValueError:
        return line
    said = told.get("message") if isinstance(told, dict) else None
    return said if isinstance(said, str) else line


def warn_of_unknown_format(environment: Mapping[str, str] = os.environ) -> None:
    """Say in the log that another format was asked for than there is; no daemon ends over that."""
    asked = environment.get(FORMAT, "")
    if asked and asked not in _FORMATS:
        log.warning(
            "%s is “%s”, which is no format of logs; this one is text. It can be %s.",
            FORMAT,
            asked,
            " or ".join(_FORMATS),
        )
