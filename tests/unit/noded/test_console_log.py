import io
import logging
import queue
from pathlib import Path

import pytest

from noded.console_log import FileOrConsole, _Dropping, begin_logging


def record(text: str, **more: object) -> logging.LogRecord:
    return logging.LogRecord("noded", logging.INFO, __file__, 1, text, None, None, **more)  # type: ignore[arg-type]  # only exc_info comes this way


@pytest.fixture
def console(tmp_path: Path) -> Path:
    path = tmp_path / "console"
    path.touch()
    return path


def test_lines_go_to_the_file_and_the_console_stays_quiet(tmp_path: Path, console: Path) -> None:
    file = tmp_path / "log" / "noded.log"
    handler = FileOrConsole(file, console)
    handler.emit(record("one"))
    handler.emit(record("two"))
    handler.close()
    assert [line.rpartition(" ")[2] for line in file.read_text().splitlines()] == ["one", "two"]
    assert console.read_text() == ""


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path, console: Path) -> None:
    file = tmp_path / "noded.log"
    handler = FileOrConsole(file, console)
    handler.emit(record("one"))
    file.rename(tmp_path / "noded.log.1")
    handler.emit(record("two"))
    handler.close()
    assert "two" in file.read_text()
    assert "two" not in (tmp_path / "noded.log.1").read_text()


@pytest.mark.parametrize("file", ["/dev/full", "/proc/no/such/place", "/"])
def test_what_the_file_cannot_take_goes_to_the_console(file: str, console: Path) -> None:
    handler = FileOrConsole(Path(file), console)
    handler.emit(record("the disk is gone"))
    handler.close()
    assert "the disk is gone" in console.read_text()


def test_the_file_is_tried_again(tmp_path: Path, console: Path) -> None:
    directory = tmp_path / "log"
    directory.write_text("in the way")
    handler = FileOrConsole(directory / "noded.log", console)
    handler.emit(record("one"))
    directory.unlink()
    handler.emit(record("two"))
    handler.close()
    assert "one" in console.read_text()
    assert "two" in (directory / "noded.log").read_text()


def test_with_neither_file_nor_console_nothing_happens() -> None:
    handler = FileOrConsole(Path("/dev/full"), Path("/proc/no/console"))
    handler.emit(record("unheard"))
    handler.close()


def test_a_multiline_record_cannot_pretend_to_be_two(tmp_path: Path, console: Path) -> None:
    file = tmp_path / "noded.log"
    handler = FileOrConsole(file, console)
    handler.emit(record("one\n2026-11-21 00:00:00,000 INFO forged"))
    handler.close()
    [line] = file.read_text().splitlines()
    assert line.endswith("one\\u000a2026-11-21 00:00:00,000 INFO forged")


def test_a_full_queue_drops_and_never_waits() -> None:
    records: queue.Queue[logging.LogRecord] = queue.Queue(1)
    handler = _Dropping(records)
    handler.emit(record("kept"))
    handler.emit(record("dropped"))
    assert records.qsize() == 1


def test_begin_logging_writes_the_file_and_shows_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    root = logging.getLogger()
    before = root.handlers, root.level
    try:
        writer = begin_logging(tmp_path / "noded.log")
        logging.getLogger("noded").info("all is well")
        logging.getLogger("noded").warning("the disk is slow")
        logging.getLogger("noded").debug("a detail")
        writer.stop()
    finally:
        root.handlers, root.level = before[0], before[1]
    written = (tmp_path / "noded.log").read_text()
    assert "all is well" in written
    assert "the disk is slow" in written
    assert "a detail" not in written
    assert shown.getvalue() == "the disk is slow\n"
    for handler in writer.handlers:
        if isinstance(handler, FileOrConsole):
            handler.close()
    assert [each.name for each in tmp_path.iterdir()] == ["noded.log"]
