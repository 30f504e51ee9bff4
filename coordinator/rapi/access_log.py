"""The access log, in the common format of web servers.

Source: https://httpd.apache.org/docs/current/logs.html#common
"""

import logging
import logging.handlers
from datetime import UTC, datetime
from pathlib import Path

from common.printable import one_line

log = logging.getLogger(__name__)


class AccessLog:
    """A file that is written to line by line, and may be renamed meanwhile."""

    def __init__(self, path: Path) -> None:
        """Begin to write to ``path``; where that cannot be done, the daemon's log says so once."""
        self._handler: logging.Handler | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handler = logging.handlers.WatchedFileHandler(path, encoding="utf-8")
        except OSError as error:
            log.warning("there is no access log: %s cannot be written: %s", path, error.strerror)

    def note(self, line: str) -> None:
        if self._handler is not None:
            record = logging.LogRecord("access", logging.INFO, "", 0, line, None, None)
            self._handler.handle(record)

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()


def common_line(
    host: str, user: str, request: str, status: int, size: int, when: datetime | None = None
) -> str:
    """Return the line of one request."""
    moment = (when or datetime.now(UTC)).strftime("%d/%b/%Y:%H:%M:%S %z")
    asked = one_line(request).replace('"', "%22")
    return f'{host or "-"} - {one_line(user) or "-"} [{moment}] "{asked}" {status} {size}'
