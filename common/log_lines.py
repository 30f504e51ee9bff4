"""Lines of a log that nobody can forge: what comes from outside is escaped, once and here."""

import logging
from typing import Any

from common.printable import one_line, printable


class LineFormatter(logging.Formatter):
    """Writes each message as one line; a traceback has several, which are ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        return printable(super().formatException(ei))
