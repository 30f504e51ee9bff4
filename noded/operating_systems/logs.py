"""What scripts have said: a file for each run, kept until there are many younger ones."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from common.errors import NodeFailure
from common.noderpc.operating_systems import ScriptOrder

MOST_KEPT = 200
LINES_TOLD = 20
_TAIL = 8 << 10  # bytes
_MOST_TOLD = 4000  # characters of them that become a part of an error


def log_path(directory: Path, order: ScriptOrder, now: float) -> Path:
    """Return where the output of a script is to go; the oldest logs make place for it.

    Raises:
        NodeFailure: there is no place for logs.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _drop_old(directory)
    except OSError as error:
        raise NodeFailure(f"Cannot keep logs in {directory}: {error.strerror}.") from error
    when = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d_%H_%M_%S_%f")
    return directory / f"{order.script}-{order.subject.os}-{order.subject.name}-{when}.log"


def last_lines(log: Path) -> str:
    """Return the end of a log, as a part of a sentence about it; nothing if it is empty."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = file.read().decode(errors="replace").strip().splitlines()[-LINES_TOLD:]
        if lines:
            return f" It said last: {' / '.join(lines)[-_MOST_TOLD:]}"
    return ""


def _drop_old(directory: Path) -> None:
    logs = sorted(directory.glob("*.log"), key=lambda path: path.stat().st_mtime)
    for path in logs[: max(0, len(logs) + 1 - MOST_KEPT)]:
        path.unlink(missing_ok=True)
