"""What others say can neither move a cursor nor look like a line of our log."""

import io
import json
import logging
import sys

import pytest

from common.errors import NodeFailure
from common.log_lines import LineFormatter
from common.printable import one_line, printable
from common.systemd import JournalFormatter
from coordinator.cli.main import guarded
from coordinator.cli.output import PaintableStream

EVIL = "a\x1b[2J\x9b1mb\u202ec\x07\r\x7f\u2028"
HARMLESS = "a\\u001b[2J\\u009b1mb\\u202ec\\u0007\\u000d\\u007f\\u2028"


def test_terminals_get_nothing_to_obey_and_readers_the_text_as_it_was() -> None:
    assert printable(EVIL) == HARMLESS
    assert json.loads(f'"{one_line(EVIL)}"') == EVIL
    assert printable("Zürich\t“web1”\n") == "Zürich\t“web1”\n"
    assert one_line("a\nb\tc") == "a\\u000ab\\u0009c"


def test_nothing_that_commands_print_reaches_the_terminal_as_it_came(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> int:
        sys.stdout.write(f"node {EVIL}\n")
        sys.stdout.write(json.dumps({"name": EVIL}, ensure_ascii=False) + "\n")
        sys.stderr.write(f"warning {EVIL}\n")
        raise NodeFailure(f"QEMU says {EVIL}.")

    assert guarded(run) == NodeFailure.exit_code
    told = capsys.readouterr()
    plain, as_json = told.out.splitlines()
    assert plain == f"node {HARMLESS}"
    assert json.loads(as_json) == {"name": EVIL}
    assert told.err == f"warning {HARMLESS}\nFailure: QEMU says {HARMLESS}.\n"


def test_colours_reach_a_terminal_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for is_terminal in (True, False):
        written = io.StringIO()
        written.isatty = lambda: is_terminal  # type: ignore[method-assign] # noqa: B023
        PaintableStream(written).write(f"\x1b[31mred\x1b[0m {EVIL}")
        red = "\x1b[31mred\x1b[0m" if is_terminal else "\\u001b[31mred\\u001b[0m"
        assert written.getvalue() == f"{red} {HARMLESS}"


PLAIN = LineFormatter("%(message)s")


@pytest.mark.parametrize("formatter", [PLAIN, JournalFormatter(PLAIN)])
def test_lines_of_a_log_cannot_be_forged(formatter: logging.Formatter) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter)
    log = logging.getLogger("tests.forged")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    log.info("%s is refused", "x\n2026-01-01 00:00:00 INFO all is well\x1b[A")
    log.error("It failed.", exc_info=ValueError("first\x1b[A"))
    first, *others = written.getvalue().splitlines()
    assert first.endswith("x\\u000a2026-01-01 00:00:00 INFO all is well\\u001b[A is refused")
    assert others[0].endswith("It failed.")
    assert others[-1].endswith("ValueError: first\\u001b[A")
