"""How far a fetch is: told by its process, read by noded, also by one that was started since."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from common.errors import GntError
from common.messages import Report, from_json, to_json
from noded.copies.frames import Garbled
from noded.copies.interface import Fetched

SIZE = 16 << 10  # bytes; a sentence and some numbers
TELL_EVERY_S = 0.5


class Told(Report):
    """``problem`` says why it ended early; a ``final`` one is there to stay."""

    fetched: Fetched = Fetched()
    problem: str = ""
    is_final: bool = False


class Status:
    """Writes to a file that noded has opened."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._fetched = Fetched()
        self._begun_at = self._told_at = time.monotonic()
        self.is_final = False

    def begin(self, total: int, done: int) -> None:
        self._begun_at = time.monotonic()
        self._fetched = Fetched(done=done, total=total, done_before=done)
        self._write(Told(fetched=self._fetched))

    def expect(self, expected: int) -> None:
        """Tell how much a script expects to write."""
        self._fetched = replace(self._fetched, expected=expected)
        self._write(Told(fetched=self._fetched))

    def advance(self, done: int, received: int) -> None:
        """Tell of progress, now and then."""
        now = time.monotonic()
        self._fetched = Fetched(
            done=done,
            total=self._fetched.total,
            expected=self._fetched.expected,
            received=received,
            seconds=now - self._begun_at,
            done_before=self._fetched.done_before,
        )
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            self._write(Told(fetched=self._fetched))

    def arrive(self) -> None:
        """Tell that all is there, though who has brought it has not heard so."""
        self._fetched = replace(self._fetched, is_there=True)
        self._write(Told(fetched=self._fetched))

    def succeed(self) -> None:
        total = self._fetched.total or self._fetched.done  # of a stream that is known now
        self._write(Told(fetched=Fetched(done=total, total=total, has_ended=True)))

    @contextmanager
    def of_connection(self, peer: str) -> Iterator[None]:
        """Leave word of what ends a conversation with ``peer`` before its end."""
        try:
            yield
        except (EOFError, Garbled) as error:
            self.fail(f"The connection to {peer} ended: {error}.", is_final=False)
        except OSError as error:
            reason = error.strerror or str(error)
            self.fail(f"The connection to {peer} broke: {reason}.", is_final=False)
        except GntError as error:
            self.fail(error.message, is_final=True)

    def fail(self, problem: str, *, is_final: bool) -> None:
        self.is_final = is_final
        self._write(Told(fetched=self._fetched, problem=problem, is_final=is_final))

    def _write(self, told: Told) -> None:
        os.pwrite(self._descriptor, to_json(told).ljust(SIZE), 0)


def read_status(path: Path) -> Told | None:
    """Return what was told last; None where nothing was, or it is being written right now."""
    try:
        return from_json(path.read_bytes().strip() or b"{}", Told, what="the state of a copy")
    except (OSError, GntError):
        return None
