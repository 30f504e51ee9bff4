"""Lines of the access log are those that every reader of such logs knows."""

from datetime import UTC, datetime
from pathlib import Path

from coordinator.rapi.access_log import AccessLog, common_line

WHEN = datetime(2026, 11, 22, 9, 5, 7, tzinfo=UTC)


def test_line_is_in_the_common_format() -> None:
    line = common_line("192.0.2.1", "alice", "GET /2/nodes HTTP/1.1", 200, 123, WHEN)
    assert line == '192.0.2.1 - alice [22/Nov/2026:09:05:07 +0000] "GET /2/nodes HTTP/1.1" 200 123'


def test_nobody_forges_a_line() -> None:
    line = common_line("192.0.2.1", "a\nb", 'GET /" 200 1\n HTTP/1.1', 404, 1, WHEN)
    assert "\n" not in line
    assert line.count('"') == 2


def test_a_renamed_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "rapi" / "rapi-access.log"
    log = AccessLog(path)
    log.note("one")
    path.rename(path.with_suffix(".1"))
    log.note("two")
    log.close()
    assert path.read_text() == "two\n"
