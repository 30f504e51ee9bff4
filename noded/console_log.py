"""noded's log: a file, and the console for what the file cannot take.

Records are written by a thread of their own: on a dying disk a write may hang for minutes, and
noded has to go on answering.
"""

import contextlib
import logging
import logging.handlers
import os
import queue
from pathlib import Path

from common.log_lines import formatter, warn_of_unknown_format
from common.systemd import is_journalled, standard_error_handler

PROGRAM = "gantry-noded"
CONSOLE = Path("/dev/console")
MOST_WAITING = 10_000  # records; beyond, the newest are dropped

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class FileOrConsole(logging.Handler):
    """Appends lines to ``file``; a line that cannot be written goes to ``console``.

    The console is opened beforehand: later there may be no disk to look it up on.
    """

    def __init__(self, file: Path, console: Path = CONSOLE) -> None:
        super().__init__()
        self.setFormatter(formatter(PROGRAM, FORMAT))
        self._path = file
        self._file: int | None = None
        self._console = _open(console, os.O_WRONLY | os.O_NOCTTY)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record).replace("\n", "\n    ") + "\n"
        except Exception:  # noqa: BLE001 -- a bad record must not end the thread that writes
            self.handleError(record)
            return
        data = line.encode(errors="replace")
        if not self._append(data) and self._console is not None:
            with contextlib.suppress(OSError):
                os.write(self._console, data)

    def close(self) -> None:
        for descriptor in (self._file, self._console):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._file = self._console = None
        super().close()

    def _append(self, data: bytes) -> bool:
        try:
            if self._file is None or self._was_moved():
                self._reopen()
            if self._file is None:
                return False
            return os.write(self._file, data) == len(data)  # a full disk takes a part
        except OSError:
            return False

    def _was_moved(self) -> bool:
        """Tell whether something, such as logrotate, has renamed the file."""
        assert self._file is not None
        here = os.fstat(self._file)
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        return (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino)

    def _reopen(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def begin_logging(file: Path, *, verbose: bool = False) -> logging.handlers.QueueListener:
    """Send all records to ``file``, and warnings to standard error as well, or all to the journal.

    Returns:
        What writes them; ``stop()`` it at the end, and it writes what is left.
    """
    records: queue.Queue[logging.LogRecord] = queue.Queue(MOST_WAITING)
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.handlers = [_Dropping(records)]
    visible = standard_error_handler(PROGRAM, "%(message)s")
    visible.setLevel(logging.NOTSET if is_journalled() else logging.WARNING)
    listener = logging.handlers.QueueListener(
        records, FileOrConsole(file), visible, respect_handler_level=True
    )
    listener.start()
    warn_of_unknown_format()
    return listener


class _Dropping(logging.handlers.QueueHandler):
    """Never waits, and says nothing about a full queue: there is nowhere to say it."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Settle the message now; its traceback stays apart, as the lines that are ours."""
        record.msg, record.args = record.getMessage(), None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self.queue.put_nowait(record)


def _open(path: Path, flags: int) -> int | None:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o640)
    except OSError:
        return None
