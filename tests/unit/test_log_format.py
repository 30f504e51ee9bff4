"""A program can read the logs of all daemons, if their operator asks for that."""

import io
import json
import logging
from datetime import datetime
from pathlib import Path

import pytest

from common.log_lines import FORMAT, formatter, message_of, warn_of_unknown_format
from common.systemd import log_to_standard_error
from noded.console_log import FileOrConsole, begin_logging

PROJECT = Path(__file__).parents[2]
EVIL = 'a"\n{"level": "info"}\x1b[2J\x9b\u2028\udc80'


def record(level: int, text: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("noded.disks", level, __file__, 1, text, args, None)


def as_json(record: logging.LogRecord) -> str:
    return formatter("gantry-noded", "%(message)s", {FORMAT: "json"}).format(record)


def shown_as_json(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Have JSON asked for; return what a daemon then writes to its standard error output."""
    root = logging.getLogger()
    monkeypatch.setenv(FORMAT, "json")
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr("sys.stderr", written := io.StringIO())
    return written


def test_a_line_is_one_object_that_says_who_when_and_what() -> None:
    line = record(logging.WARNING, "the disk %s is slow", "sda")
    told = json.loads(as_json(line))
    moment = datetime.fromisoformat(told.pop("time"))
    assert abs(moment.timestamp() - line.created) < 0.002
    assert moment.utcoffset() is not None
    assert told == {
        "level": "warning",
        "program": "gantry-noded",
        "pid": line.process,
        "logger": "noded.disks",
        "message": "the disk sda is slow",
    }


def test_a_line_cannot_be_forged_and_gives_back_what_was_said() -> None:
    line = as_json(record(logging.INFO, "%s is refused", EVIL))
    assert not {"\n", "\x1b", "\x9b", "\u2028"} & set(line)
    assert json.loads(line)["message"] == f"{EVIL} is refused"
    assert json.loads(line)["level"] == "info"


def test_a_traceback_is_within_its_line() -> None:
    failed = record(logging.ERROR, "It failed.")
    failed.exc_info = ValueError, ValueError(EVIL), None
    [line] = as_json(failed).split("\n")
    told = json.loads(line)
    assert told["message"] == "It failed."
    assert told["traceback"] == f"ValueError: {EVIL}"


def test_what_a_line_says_is_found_in_either_format() -> None:
    failed = record(logging.ERROR, "There is no %s.", "quorum")
    plain = formatter("gantry-coordinator", "%(levelname)s %(message)s", {}).format(failed)
    assert message_of(plain) == "ERROR There is no quorum."
    assert message_of(as_json(failed)) == "There is no quorum."
    for odd in ("7", "{}", '{"message": 7}', '["a"]', "{", ""):
        assert message_of(odd) == odd


@pytest.mark.parametrize("asked", [{}, {FORMAT: ""}, {FORMAT: "text"}, {FORMAT: "xml"}])
def test_lines_are_for_people_unless_json_is_asked_for(asked: dict[str, str]) -> None:
    said = formatter("gantry-noded", "%(levelname)s %(message)s", asked)
    assert said.format(record(logging.INFO, "all is well")) == "INFO all is well"


def test_a_format_that_there_is_not_is_named(caplog: pytest.LogCaptureFixture) -> None:
    for fine in ({}, {FORMAT: "json"}, {FORMAT: "text"}, {FORMAT: ""}):
        warn_of_unknown_format(fine)
    assert not caplog.messages
    warn_of_unknown_format({FORMAT: "xml"})
    [message] = caplog.messages
    assert message.startswith(f"{FORMAT} is “xml”, which is no format of logs")
    assert message.endswith("It can be text or json.")


def test_daemons_write_objects_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_as_json(monkeypatch)
    log_to_standard_error("gantry-rapi")
    logging.getLogger("x").info("ready")
    told = json.loads(shown.getvalue())
    assert (told["program"], told["message"]) == ("gantry-rapi", "ready")


def test_the_file_of_noded_has_the_same_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = shown_as_json(monkeypatch)
    writer = begin_logging(tmp_path / "noded.log")
    logging.getLogger("noded").info("all is well")
    logging.getLogger("noded").error("a disk", exc_info=ValueError("slow"))
    writer.stop()
    for handler in writer.handlers:
        if isinstance(handler, FileOrConsole):
            handler.close()
    first, second = map(json.loads, (tmp_path / "noded.log").read_text().splitlines())
    assert first["message"] == "all is well"
    assert second["traceback"].endswith("ValueError: slow")
    assert json.loads(shown.getvalue())["message"] == "a disk"


def test_the_units_of_all_daemons_read_one_setting() -> None:
    units = (PROJECT / "systemd").glob("gantry-*.service")
    daemons = [unit for unit in units if "ExecStart=gantry-" in unit.read_text()]
    assert len(daemons) == 6
    for unit in daemons:
        assert "EnvironmentFile=-/etc/default/gantry\n" in unit.read_text(), unit
