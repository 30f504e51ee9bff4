"""What a daemon tells systemd, and how its log lines reach the journal.

Nothing of it does anything where systemd did not start us.

Source: sd_notify(3), sd_pid_notify_with_fds(3), sd_watchdog_enabled(3), sd-daemon(3);
$JOURNAL_STREAM in systemd.exec(5).
"""

import contextlib
import logging
import os
import socket
import struct
from collections.abc import Mapping

from common.log_lines import formatter, warn_of_unknown_format

PINGS = 3  # in the time after which systemd takes us for dead

_PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))  # syslog(3)
_DEBUG = 7


class Supervisor:
    """Whoever started this daemon and may wait for its word.

    One socket is kept open: the word that we are alive must not fail for want of a descriptor.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Find out from ``environment`` who listens, and how often it wants to hear from us."""
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.patience_s = _patience(environment)

    def tell(self, *lines: str) -> None:
        """Send assignments, such as READY=1; never waits, and never fails."""
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            self._socket.sendto("\n".join(lines).encode(), socket.MSG_DONTWAIT, self._address)

    def keep(self, descriptor: int, name: str) -> None:
        """Have a descriptor kept open for whoever is started in our place; never fails.

        It is kept until this service is stopped, not restarted, by an operator.
        """
        if self._socket is None:
            return
        words = f"FDSTORE=1\nFDNAME={name}\nFDPOLL=0".encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", descriptor))
        with contextlib.suppress(OSError):
            self._socket.sendmsg([words], [rights], socket.MSG_DONTWAIT, self._address)

    def close(self) -> None:
        """Have nothing more to say."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def tell_alive(self) -> None:
        """Go on saying that the event loop turns, for as long as this is not cancelled.

        Returns at once where nobody wants to know.
        """
        import asyncio  # the watcher does without, which would take longer than all it does

        if self._socket is None or self.patience_s is None:
            return
        while True:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self.patience_s / PINGS)


class JournalFormatter(logging.Formatter):
    """Marks each line with its priority; the journal adds the time and the program by itself."""

    def __init__(self, lines: logging.Formatter) -> None:
        """Mark what ``lines`` writes."""
        super().__init__()
        self._lines = lines

    def format(self, record: logging.LogRecord) -> str:
        mark = next((rank for level, rank in _PRIORITIES if record.levelno >= level), _DEBUG)
        return "\n".join(f"<{mark}>{line}" for line in self._lines.format(record).split("\n"))


def is_journalled(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether the standard error output is the journal's."""
    try:
        here = os.fstat(2)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{here.st_dev}:{here.st_ino}"


def standard_error_handler(program: str, form: str) -> logging.Handler:
    """Return what writes to the standard error output: to the journal, or for people to read.

    Args:
        program: whose log it is.
        form: of a line for people; see ``logging.Formatter``.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(
        JournalFormatter(formatter(program, "%(message)s"))
        if is_journalled()
        else formatter(program, form)
    )
    return handler


def log_to_standard_error(
    program: str, form: str = "%(asctime)s %(levelname)s %(message)s"
) -> None:
    """Have this process log to its standard error output; see ``standard_error_handler``."""
    logging.basicConfig(level=logging.INFO, handlers=[standard_error_handler(program, form)])
    warn_of_unknown_format()


def _patience(environment: Mapping[str, str]) -> float | None:
    """Return after how many seconds of silence systemd ends this very process, if ever."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        limit_us = int(environment.get("WATCHDOG_USEC", "0"))
    except ValueError:
        return None
    return limit_us / 1e6 if limit_us > 0 else None
